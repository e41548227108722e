//! Which part of a run is made here: `--shard 3/40`, or what the scheduler says.

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::store::Shard;

/// `3/40`, `auto`, `auto/40`.
pub fn parse(text: &str) -> Result<Shard> {
    let wrong = |why: &str| Error::input(format!("--shard {}: {why}", printable(text)));
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
    if !(1..=shard.of).contains(&shard.index) {
        let why = format!("there is no shard {} of {}: they count from 1", shard.index, shard.of);
        return Err(wrong(&why).into());
    }
    Ok(shard)
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
    // Far from where counting on would overflow.
    let number = |name: &str| match env(name).map(|text| (text.trim().parse::<u32>(), text)) {
        None => Ok(None),
        Some((Ok(number), _)) => Ok(Some(number as usize)),
        Some((Err(_), text)) => {
            Err(format!("${name} is `{}`, which is no number of a shard", printable(&text)))
        }
    };
    let of = match of {
        None => number("NPL_SHARDS")?,
        said => said,
    };
    if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
        if let Some(of) = of {
            // The array may be one of those that were missing: its numbers are those of the shards.
            return Ok(Shard { of, index: id });
        }
        let all = (
            number("SLURM_ARRAY_TASK_MIN")?,
            number("SLURM_ARRAY_TASK_MAX")?,
            number("SLURM_ARRAY_TASK_COUNT")?,
        );
        return match all {
            (Some(min @ 0..=1), Some(max), Some(count)) if max + 1 == count + min && id >= min => {
                Ok(Shard { of: count, index: id + 1 - min })
            }
            _ => Err(
                "this array is not 1-N, so that it does not say how many shards there are; write `auto/N`"
                    .into(),
            ),
        };
    }
    for (rank, size) in RANKS {
        if let Some(index) = number(rank)? {
            let of = match (of, size) {
                (None, Some(size)) => number(size)?,
                (said, _) => said,
            };
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
    fn what_a_scheduler_says_wrongly_is_told() {
        let told = |set: &[(&str, &str)]| {
            let env = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
            scheduled(None, &env).unwrap_err()
        };
        assert_eq!(
            told(&[("SLURM_ARRAY_TASK_ID", "x\u{1b}")]),
            "$SLURM_ARRAY_TASK_ID is `x\\u{1b}`, which is no number of a shard"
        );
        assert!(told(&[("NPL_SHARDS", "")]).contains("$NPL_SHARDS is ``"));
        assert!(told(&[("PMI_RANK", "18446744073709551615"), ("PMI_SIZE", "2")]).contains("$PMI_RANK is"));
        assert!(told(&[("PMI_RANK", "1"), ("PMI_SIZE", "two")]).contains("$PMI_SIZE is `two`"));
        let array = |min, max, count| {
            let of = [
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_COUNT", count),
            ];
            told(&[&[("SLURM_ARRAY_TASK_ID", "0")], &of[..]].concat())
        };
        assert!(
            array("1", "4", "4").contains("write `auto/N`")
                && array("0", "4294967295", "1").contains("write `auto/N`")
        );
    }

    #[test]
    fn shards_count_from_1() {
        assert_eq!(parse("3/40").unwrap(), Shard { of: 40, index: 3 });
        for text in ["0/4", "5/4", "3", "a/4", "3/", "/4", "3/4/5", "-1/4", "1/0", "1/2000000"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(
            parse("5/4")
                .unwrap_err()
                .to_string()
                .ends_with("--shard 5/4: there is no shard 5 of 4: they count from 1")
        );
    }
}
