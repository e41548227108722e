//! How much memory may be used: what does not fit is refused before it is allocated.

use std::fs::read_to_string;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are allowed where the system does not say how much memory is free.
const UNKNOWN: u64 = 1 << 34;

/// The most that this process may use, by its user's wish.
static ALLOWED: AtomicU64 = AtomicU64::new(u64::MAX);

/// From now on no more bytes than this are to be used.
pub fn allow(bytes: u64) {
    ALLOWED.store(bytes, Ordering::Relaxed);
}

/// Bytes that can still be allocated: what is free on this machine, unless a control group, a limit on the address space
/// (`prlimit --as`, `ulimit -v`) or [`allow`] leaves less.
pub fn free() -> u64 {
    let file = |path: &str| read_to_string(path).unwrap_or_default();
    let (mapped, resident) = used(&file("/proc/self/statm")).unwrap_or((0, 0));
    let limit = address_space(&file("/proc/self/limits")).map(|limit| limit.saturating_sub(mapped));
    let allowed = Some(ALLOWED.load(Ordering::Relaxed)).filter(|&most| most < u64::MAX);
    let left = allowed.map(|most| most.saturating_sub(resident));
    let machine = available(&file("/proc/meminfo"));
    let groups = groups(&file("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    [machine, groups, limit, left].into_iter().flatten().min().unwrap_or(UNKNOWN)
}

/// Bytes that this process has in memory; 0 where the system does not say.
fn resident() -> u64 {
    read_to_string("/proc/self/statm").ok().and_then(|text| used(&text)).map_or(0, |(_, resident)| resident)
}

/// Bytes that this process may have in all: what it has, and what is [`free`], but no more than is allowed.
pub fn most() -> u64 {
    free().saturating_add(resident()).min(ALLOWED.load(Ordering::Relaxed))
}

/// So many cells fit into the free memory.
pub fn room() -> usize {
    usize::try_from(free() / 8).unwrap_or(usize::MAX)
}

/// Bytes of so many cells, for people.
pub fn shown(cells: usize) -> String {
    bytes(8.0 * cells as f64)
}

/// So many bytes, for people.
pub fn bytes(count: f64) -> String {
    if count >= 1e9 { format!("{:.1} GB", count / 1e9) } else { format!("{:.1} MB", count / 1e6) }
}

/// `MemAvailable` of /proc/meminfo.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Bytes of address space that a process has taken, and those of them that are in memory and not pages of files, which the system
/// takes back when it needs them: /proc/self/statm, in pages.
fn used(statm: &str) -> Option<(u64, u64)> {
    const PAGE: u64 = 4096;
    let mut pages = statm.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (mapped, resident, of_files) = (pages.next()??, pages.next()??, pages.next()??);
    Some((mapped * PAGE, resident.saturating_sub(of_files) * PAGE))
}

/// The soft limit on the address space in /proc/self/limits, if there is one.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// What the control groups of a process leave: its own and those around it, of version 2 or 1.
fn groups(cgroup: &str, root: &Path) -> Option<u64> {
    let group = |line: &str| {
        if let Some(path) = line.strip_prefix("0::") {
            return Some((root.to_owned(), path.to_owned(), ["memory.max", "memory.current"]));
        }
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
        controllers.split(',').any(|c| c == "memory").then(|| (root.join("memory"), path.to_owned(), names))
    };
    let left = |(top, path, [limit, usage]): (std::path::PathBuf, String, [&str; 2])| {
        let number = |folder: &Path, name: &str| -> Option<u64> {
            read_to_string(folder.join(name)).ok()?.trim().parse().ok()
        };
        let own = top.join(path.trim_start_matches('/'));
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&top));
        // Pages of files count as used, and are free for the asking.
        let cached = |folder: &Path| -> u64 {
            let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let of = |line: &str| {
                let (name, bytes) = line.split_once(' ')?;
                matches!(name, "inactive_file" | "active_file").then(|| bytes.trim().parse::<u64>().ok())?
            };
            stat.lines().filter_map(of).sum()
        };
        let used = |folder: &Path| number(folder, usage).unwrap_or(0).saturating_sub(cached(folder));
        folders.filter_map(|f| Some(number(f, limit)?.saturating_sub(used(f)))).min()
    };
    cgroup.lines().filter_map(group).filter_map(left).min()
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

    #[test]
    fn limits_of_a_process_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         300000000            unlimited            bytes     \n";
        assert_eq!(address_space(limits), Some(300_000_000));
        assert_eq!(address_space(&limits.replace("300000000", "unlimited")), None);
        assert_eq!(used("9 3 2 0 0 0 0\n"), Some((36_864, 4096)));
    }

    #[test]
    fn control_groups_around_a_process_count_too() {
        let folder = crate::tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "300\n");
        write("a/memory.stat", "anon 200\ninactive_file 60\nactive_file 40\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "600\n");
        write("memory/c/memory.usage_in_bytes", "500\n");
        assert_eq!(groups("0::/a/b\n", folder.path()), Some(800));
        assert_eq!(groups("0::/a/b\n5:cpu,memory:/c\n", folder.path()), Some(100));
        assert_eq!(groups("0::/\n", folder.path()), None);
    }
}
