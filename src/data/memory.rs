//! How large a table may be: what does not fit into the memory is refused before it is allocated.

use std::fs::read_to_string;

/// Cells that are allowed where the system does not say how much memory is free.
const UNKNOWN: u64 = 1 << 31;

/// So many cells fit into the free memory.
pub fn room() -> usize {
    usize::try_from(free().map_or(UNKNOWN, |bytes| bytes / 8)).unwrap_or(usize::MAX)
}

/// Bytes of so many cells, for people.
pub fn shown(cells: usize) -> String {
    match 8.0 * cells as f64 {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} MB", bytes / 1e6),
    }
}

/// Free bytes of this machine, or of the control group of this process where that allows less.
fn free() -> Option<u64> {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let group = read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        read_to_string(format!("/sys/fs/cgroup{path}/memory.max")).ok()?.trim().parse().ok()
    });
    machine.into_iter().chain(group).min()
}

/// `MemAvailable` of /proc/meminfo.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_linux_says() {
        let text = "MemTotal:       24684100 kB\nMemFree:        15237096 kB\nMemAvailable:   22036700 kB\n";
        assert_eq!(available(text), Some(22_036_700 * 1024));
        assert_eq!(available("Mem: 3"), None);
        assert!(room() > 1 << 10);
    }
}
