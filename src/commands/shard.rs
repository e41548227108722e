//! Which part of a run is made here: `--shard 3/40`, or what the scheduler says.

use anyhow::Result;
use npl::error::Error;
use npl::store::Shard;

/// `3/40`, `auto`, `auto/40`.
pub fn parse(text: &str) -> Result<Shard> {
    let wrong = |why: &str| Error::input(format!("--shard {}: {why}", npl::config::printable(text)));
    let form = || wrong("must be I/N with I from 1 to N, `auto` or `auto/N`");
    let (index, of) = match text.split_once('/') {
        Some((index, of)) => (index, Some(of.parse::<usize>().map_err(|_| form())?)),
        None => (text, None),
    };
    let shard = match (index, of) {
        ("auto", of) => scheduled(of, &|name| std::env::var(name).ok()).map_err(|why| wrong(&why))?,
        (index, Some(of)) => Shard { of, index: index.parse().map_err(|_| form())? },
        (_, None) => return Err(form().into()),
    };
    if shard.of > 1_000_000 {
        return Err(wrong("at most 1000000 shards are possible").into());
    }
    if (1..=shard.of).contains(&shard.index) { Ok(shard) } else { Err(form().into()) }
}

/// Counts from 0 that schedulers give, and the sizes beside them.
const RANKS: [(&str, Option<&str>); 4] = [
    ("JOB_COMPLETION_INDEX", None),
    ("AWS_BATCH_JOB_ARRAY_INDEX", Some("AWS_BATCH_JOB_ARRAY_SIZE")),
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
];

/// What the environment says; `of` where the command line says how many there are.
fn scheduled(of: Option<usize>, env: &dyn Fn(&str) -> Option<String>) -> std::result::Result<Shard, String> {
    let number = |name: &str| env(name).and_then(|text| text.trim().parse::<usize>().ok());
    let of = of.or_else(|| number("NPL_SHARDS"));
    if let Some(id) = number("SLURM_ARRAY_TASK_ID") {
        if let Some(of) = of {
            // The array may be one of those that were missing: its numbers are those of the shards.
            return Ok(Shard { of, index: id });
        }
        let all = (
            number("SLURM_ARRAY_TASK_MIN"),
            number("SLURM_ARRAY_TASK_MAX"),
            number("SLURM_ARRAY_TASK_COUNT"),
        );
        return match all {
            (Some(min @ 0..=1), Some(max), Some(count)) if max + 1 - min == count => {
                Ok(Shard { of: count, index: id + 1 - min })
            }
            _ => Err(
                "this array is not 1-N, so that it does not say how many shards there are; write `auto/N`"
                    .into(),
            ),
        };
    }
    for (rank, size) in RANKS {
        if let Some(index) = number(rank) {
            let of = of.or_else(|| size.and_then(number));
            let of =
                of.ok_or_else(|| format!("${rank} does not say how many shards there are; write `auto/N`"))?;
            return Ok(Shard { of, index: index + 1 });
        }
    }
    Err("no scheduler says which part this is (SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX, \
         OMPI_COMM_WORLD_RANK, PMI_RANK)"
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(of: Option<usize>, set: &[(&str, &str)]) -> Option<(usize, usize)> {
        let env = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        scheduled(of, &env).ok().map(|shard| (shard.index, shard.of))
    }

    #[test]
    fn schedulers_say_which_part_it_is() {
        let slurm = |id, min, max, count| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_COUNT", count),
            ]
        };
        assert_eq!(auto(None, &slurm("3", "1", "40", "40")), Some((3, 40)));
        assert_eq!(auto(None, &slurm("3", "0", "39", "40")), Some((4, 40)));
        // What was missing, sent again, is no whole array.
        assert_eq!(auto(None, &slurm("17", "3", "19", "4")), None);
        assert_eq!(auto(Some(40), &slurm("17", "3", "19", "4")), Some((17, 40)));
        assert_eq!(auto(None, &[("JOB_COMPLETION_INDEX", "4")]), None);
        assert_eq!(auto(Some(9), &[("JOB_COMPLETION_INDEX", "4")]), Some((5, 9)));
        assert_eq!(auto(None, &[("JOB_COMPLETION_INDEX", "4"), ("NPL_SHARDS", "9")]), Some((5, 9)));
        let aws = [("AWS_BATCH_JOB_ARRAY_INDEX", "0"), ("AWS_BATCH_JOB_ARRAY_SIZE", "2")];
        assert_eq!(auto(None, &aws), Some((1, 2)));
        assert_eq!(auto(None, &[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "3")]), Some((3, 3)));
        assert_eq!(auto(None, &[("PMI_RANK", "2"), ("PMI_SIZE", "3")]), Some((3, 3)));
        assert_eq!(auto(None, &[]), None);
    }

    #[test]
    fn shards_count_from_1() {
        assert_eq!(parse("3/40").unwrap(), Shard { of: 40, index: 3 });
        for text in ["0/4", "5/4", "3", "a/4", "3/", "/4", "3/4/5", "-1/4", "1/0", "1/2000000"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
