//! The command line, and nothing behind it.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use npl::kernel::Simd;
use npl::report::Simpler;
use npl::samples::{self, Interval, NameStyle, Text};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold());

/// Posterior samples by optimisation: Bayesian nonparametric learning with the posterior bootstrap.
#[derive(Parser)]
#[command(name = "npl", styles = STYLES, disable_version_flag = true, arg_required_else_help = true,
    args_conflicts_with_subcommands = true, subcommand_negates_reqs = true,
    override_usage = "npl <COMMAND>\n       npl --version [--verbose]", after_help = "\
Start here:
  npl new gmm > my.toml       a commented experiment to edit
  npl check my.toml           what it will do, and what it will cost
  npl run my.toml             posterior draws, evaluation, run directory
  npl summary runs/gmm        what came out

Exit codes: 0 done, 1 the run failed, 2 wrong input, 3 too many failed draws, 130 interrupted, 143 terminated or out \
of its time limit (what was made is kept; --resume goes on).")]
pub struct Cli {
    #[command(flatten)]
    pub version: VersionArgs,
    /// Without one, the version is asked for
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Args)]
pub struct VersionArgs {
    /// Print the version
    #[arg(long, short = 'V', required = true)]
    pub version: bool,
    /// With --version: also which kernels, how many threads and which features this program has here
    #[arg(long, requires = "version")]
    pub verbose: bool,
    #[command(flatten, next_help_heading = "With --version --verbose, as for commands that compute")]
    pub machine: MachineArgs,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an experiment: data, posterior draws, evaluation, run directory
    #[command(after_help = "\
Examples:
  npl run configs/gmm_toy.toml
  npl run configs/gmm_toy.toml --set sampler.B=500 --set sampler.R=5 --out runs/quick
  npl run configs/gmm_toy.toml --samples - | head -3
  npl run configs/gmm_toy.toml --quiet --json | jq .metrics.lppd.mean
  npl run big.toml --resume --time-limit 3h50m     as often as it takes
  npl run big.toml --more 2000                     more draws for a finished run
  npl run big.toml --shard 3/40                    one of 40 parts; `npl merge runs/big` joins them")]
    Run(RunArgs),
    /// Join the shards of a run that was split over machines
    #[command(after_help = "\
Examples:
  npl merge runs/big                   all shards are in one folder
  npl merge a b c --out runs/big       each is in its own

The result is what one machine would have written, times aside. Data files are needed as for the run.")]
    Merge(MergeArgs),
    /// Make some draws of a finished run again, and compare every bit
    #[command(after_help = "\
Examples:
  npl verify runs/gmm_toy
  npl verify runs/gmm_toy --draws 100")]
    Verify(VerifyArgs),
    /// Show how one draw was made: weights, pseudo-samples, restarts, why each search ended
    #[command(after_help = "\
Examples:
  npl explain runs/gmm_toy --draw 17
  npl explain runs/gmm_toy --draw 17 --repeat 2")]
    Explain(ExplainArgs),
    /// Validate an experiment, print it resolved, and estimate its cost
    #[command(after_help = "\
Examples:
  npl check configs/gmm_toy.toml
  npl check my.toml --set prior.alpha=10
  npl check --schema > npl.schema.json     the JSON schema, for editors")]
    Check(CheckArgs),
    /// Print a commented starter experiment
    #[command(after_help = "\
Examples:
  npl new gmm > my.toml
  npl new quantile")]
    New {
        /// gmm, logistic, linear, mean, custom, …; an unknown one names them all
        model: String,
    },
    /// Per-parameter mean, sd and quantiles; restart and convergence diagnostics
    #[command(after_help = "\
Examples:
  npl summary runs/gmm_toy
  npl summary runs/gmm_toy --repeat 3 --format csv")]
    Summary(SummaryArgs),
    /// Align the components of a mixture over all draws
    #[command(after_help = "\
Examples:
  npl relabel runs/gmm_toy                        a copy with aligned labels beside the draws
  npl relabel runs/gmm_toy --out aligned.npy
  npl summary runs/gmm_toy --relabel

The draws of the run are never changed. docs/relabelling.md has the rule.")]
    Relabel(RelabelArgs),
    /// Stream draws of any stored format as text, chosen columns
    #[command(after_help = "\
Examples:
  npl samples runs/gmm_toy --columns 'mu.*' | head -3
  npl samples runs/gmm_toy --columns 'mu.*' --format tsv --drop-failed --relabel
  npl samples runs/gmm_toy --repeat 2 --draws 1..100 --format ndjson

Without --columns there are all of them. Numbers are the shortest that read back exactly.")]
    Samples(SamplesArgs),
    /// Predict new rows: mean and interval of the predicted quantity, responses that may come, log predictive density
    #[command(after_help = "\
Examples:
  npl predict runs/adult new.csv --keep id > predicted.csv
  npl predict runs/adult new.csv --level 0.8 --format ndjson --out predicted.ndjson
  npl predict runs/adult new.csv --value 'odds = prediction/(1 - prediction)'
  cut -d, -f1-5 new.csv | npl predict runs/adult -

New rows are prepared as the training rows were; the response is not needed, and scored where it is there. docs/prediction.md has
the columns.")]
    Predict(PredictArgs),
    /// Runs side by side, mean and sd over repeats
    #[command(after_help = "\
Examples:
  npl table runs/gmm_toy runs/gmm_toy_fi
  npl table runs/* --format markdown")]
    Table(TableArgs),
    /// Which of several runs predicts the same test rows better, paired over rows
    #[command(after_help = "\
Examples:
  npl compare runs/ridge runs/student
  npl compare runs/* --format markdown

The data are read again: densities of single rows are not kept. docs/summary.md says what the numbers mean.")]
    Compare(CompareArgs),
    /// How often intervals cover: the experiment on many data sets of which the truth is known
    #[command(after_help = "\
Examples:
  npl coverage normal.toml --datasets 2000
  npl coverage wrong.toml --interval percentile,simultaneous --set method=nuts --out runs/wrong-nuts
  npl coverage study.toml --resample 200                    data sets of 200 rows of its file, which is the truth

Data sets are repeats with seeds of their own. A second call goes on where the first was stopped, and adds data sets to those that
are there. docs/calibration.md says what the numbers mean.")]
    Coverage(CoverageArgs),
    /// Pictures of runs: densities, intervals, paths, mixtures, diagnostics
    #[command(after_help = "\
Kinds:
  marginal      densities of one or more parameters; several runs in one panel
  bivariate     joint density of two parameters: contours and draws
  pairs         every pair of some parameters
  forest        medians with 80 % and 95 % intervals: the default for a regression
  path          medians and 80 % bands along a path, against log c
  surface       density of one kept parameter along a path
  tuning        a metric along a path with its errors, the best setting and the simplest within one
  mixture       density of a mixture, with its band, over the histogram of the data
  calibration   predictive probabilities of a classifier against observed shares
  correlation   heat map of the correlations of the covariates
  restarts      objective of every restart of some draws: was R enough?
  lppd          LPPD of the test rows against R

Examples:
  npl plot runs/gmm_toy                                    in the terminal, the figure that says most
  npl plot runs/gmm_toy --parameters mu.1 mu.2 --out mu.pdf
  npl plot runs/rr runs/nuts --kind marginal --parameters 'mu.*' --label NPL NUTS --out mu.svg
  npl plot runs/genetics_path --truth beta.snp14=0.4578 --out path.png")]
    Plot(PlotArgs),
    /// One self-contained HTML page of a run, or of several side by side
    #[command(after_help = "\
Examples:
  npl report runs/gmm_toy                                   runs/gmm_toy/report.html
  npl report runs/rr runs/nuts runs/advi --out compare.html
  npl report runs/arcene --out - | wc -c

The page needs no network and no script. docs/report.md says what is on it.")]
    Report(ReportArgs),
    /// Choose alpha: from a wanted prior sd of the mean, or by simulating the prior of theta
    #[command(after_help = "\
Examples:
  npl alpha --sd 0.5 --base-sd 1.414       alpha for which the mean has prior sd 0.5
  npl alpha my.toml --sd 0.5               the same, F_pi and T taken from the experiment
  npl alpha my.toml --values 0.5,1,5,20    simulate the prior of theta (the run with n = 0) for each alpha")]
    Alpha(AlphaArgs),
    /// Make a column file of a large text file: compact, sealed, and read many times as fast
    #[command(after_help = "\
Examples:
  npl convert flights.csv                          makes flights.nplc, for data.train = \"flights.nplc\"
  npl convert flights.csv.gz --out /data/f.nplc
  npl convert german.csv --delimiter ';' --decimal , --text zip

A column file goes wherever a text file does, and every draw is the same. Missing values, columns of text, classes and all that is
done to the rows stay with the experiment; what is said here of delimiters and headers is left out there. docs/columns.md has
the format.")]
    Convert(ConvertArgs),
    /// Write prepared data, weights, pseudo-samples and starts of some draws, to check npl with other tools
    #[command(after_help = "\
Examples:
  npl export configs/adult.toml --out adult-export
  npl export my.toml --out x --draws 100 --repeat 2

Files: train.csv and test.csv (covariates, then response__ if there is one), weights.csv (a row per draw, a column per
training row), pseudo.csv (draw, weight, pseudo-sample; with a [prior] only), starts.csv (draw, restart, parameters) and
config.toml (the resolved experiment).")]
    Export(ExportArgs),
    /// Print the JSON schema of experiment files, for editors
    #[command(after_help = "\
Examples:
  npl schema > npl.schema.json

Editors with Taplo (Even Better TOML in VS Code; vim, helix and emacs through its language server) check and complete experiment
files that begin with a line

  #:schema ./npl.schema.json

as those of `npl new` do, with the schema beside them. For all files of a folder, in .taplo.toml:

  [[rule]]
  include = [\"**/*.toml\"]
  [rule.schema]
  path = \"./npl.schema.json\"")]
    Schema,
    /// Print shell completions, which know models, keys, files and runs
    #[command(after_help = "\
Examples:
  npl completions bash > ~/.local/share/bash-completion/completions/npl
  npl completions zsh > ~/.zfunc/_npl
  npl completions fish > ~/.config/fish/completions/npl.fish")]
    Completions { shell: Shell },
    /// What the last word may become, a line each: asked by shells
    #[command(hide = true)]
    Complete {
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Print the manual as a page for man
    #[command(after_help = "\
Examples:
  npl man > ~/.local/share/man/man1/npl.1
  npl man | man -l -")]
    Man,
}

/// Shells with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

/// What changes an experiment, and how it is computed.
#[derive(Args)]
pub struct Overrides {
    /// Change a key: `--set sampler.B=500` (repeatable; the value is TOML, a bare word is a string)
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of all randomness, as `--set seed=N`
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Where data files are looked for first; then $NPL_DATA, ./data and the current folder
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// What of the machine is used.
#[derive(Args)]
pub struct MachineArgs {
    /// Threads to use; no result depends on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024),
        allow_negative_numbers = true)]
    pub threads: Option<u16>,
    /// Refuse what would need more memory than this (500M, 8G) [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = super::commands::size)]
    pub max_memory: Option<u64>,
    /// Where tables of large files are kept to be read again, and rows that memory is too small for, see `data.mapped` [default: npl in
    /// $XDG_CACHE_HOME, or ~/.cache/npl]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Read large files of text anew: keep no table of them in the cache, and look for none there
    #[arg(long)]
    pub no_cache: bool,
    /// Pin the machine code of the kernels; recorded with the run [default: the best this CPU has]
    #[arg(long, value_enum)]
    pub simd: Option<Simd>,
}

#[derive(Args)]
pub struct RunArgs {
    /// Experiment file
    pub config: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Run directory [default: runs/<name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace what is in the run directory, when the new results are there
    #[arg(long, conflicts_with_all = ["resume", "more"])]
    pub force: bool,
    /// Go on with a run that was interrupted, or give a finished one more draws by a larger sampler.B; starts where nothing
    /// is there yet
    #[arg(long)]
    pub resume: bool,
    /// So many more draws than the finished run has; implies --resume
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
        allow_negative_numbers = true, conflicts_with = "shard")]
    pub more: Option<u32>,
    /// Only part I of N, counted from 1; `auto` asks the scheduler, `auto/N` for I only
    #[arg(long, value_name = "I/N", conflicts_with = "samples", conflicts_with = "json")]
    pub shard: Option<String>,
    /// Write what was made to disk about so often, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = super::commands::seconds,
        allow_negative_numbers = true)]
    pub keep_every: std::time::Duration,
    /// Stop after this time (90s, 45m, 3h50m), keep what was made, and exit with 143
    #[arg(long, value_name = "TIME", value_parser = super::commands::time)]
    pub time_limit: Option<std::time::Duration>,
    /// Also write the draws here as CSV; `-` is standard output
    #[arg(long, value_name = "-")]
    pub samples: Option<String>,
    /// How parameters are named: mu.1.2 or mu[1,2]
    #[arg(long, value_enum, default_value_t)]
    pub names: NameStyle,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the report as JSON on standard output
    #[arg(long, conflicts_with = "samples")]
    pub json: bool,
}

#[derive(Args)]
pub struct MergeArgs {
    /// Folders with shards
    #[arg(required = true, value_name = "DIR")]
    pub shards: Vec<PathBuf>,
    /// Run directory [default: the folder, if there is one only]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace what is in the run directory, when the new results are there
    #[arg(long)]
    pub force: bool,
    /// Where data files are looked for first; then $NPL_DATA, ./data and the current folder
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// How parameters are named: mu.1.2 or mu[1,2]
    #[arg(long, value_enum, default_value_t)]
    pub names: NameStyle,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct VerifyArgs {
    /// Run directory
    pub run: PathBuf,
    /// So many draws, picked at random; of NUTS, the chains that they are in
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..),
        allow_negative_numbers = true)]
    pub draws: u32,
    /// Where data files are looked for first; then $NPL_DATA, ./data and the current folder
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
}

#[derive(Args)]
pub struct ExplainArgs {
    /// Run directory
    pub run: PathBuf,
    /// Which draw, counted from 1
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub draw: u64,
    /// Which repeat, counted from 1; of a path, which setting
    #[arg(long, value_name = "R", default_value_t = 1, allow_negative_numbers = true)]
    pub repeat: usize,
    /// Of which group, where there are groups
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// So many of the largest weights, and of the restarts
    #[arg(long, value_name = "K", default_value_t = 10, allow_negative_numbers = true)]
    pub top: usize,
    /// Where data files are looked for first; then $NPL_DATA, ./data and the current folder
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub reading: ReadArgs,
}

/// How a finished run is read.
#[derive(Args)]
pub struct ReadArgs {
    /// Do not check files against the manifest
    #[arg(long)]
    pub no_verify: bool,
}

#[derive(Args)]
pub struct CheckArgs {
    /// Experiment file
    #[arg(required_unless_present = "schema")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Print the JSON schema of experiment files instead
    #[arg(long)]
    pub schema: bool,
    /// Say into how many shards of so many minutes each the run could be cut, on machines like this one
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = super::commands::minutes)]
    pub shard_minutes: Option<f64>,
}

#[derive(Args)]
pub struct ConvertArgs {
    /// Text file, gzip or not, or a Parquet file
    pub data: PathBuf,
    /// File to write [default: DATA with the ending .nplc]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// One character between cells [default: a comma]
    #[arg(long, value_name = "C", conflicts_with = "whitespace")]
    pub delimiter: Option<String>,
    /// Blanks between cells
    #[arg(long)]
    pub whitespace: bool,
    /// Whether the first line holds names [default: it does if one of its cells is not a number]
    #[arg(long, value_name = "BOOL")]
    pub header: Option<bool>,
    /// Lines to pass over at the top
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub skip_lines: usize,
    /// Lines that begin with this character are passed over
    #[arg(long, value_name = "C")]
    pub comment: Option<String>,
    /// What stands before decimals, `.` or `,`
    #[arg(long, value_name = "C", default_value = ".", value_parser = [".", ","])]
    pub decimal: String,
    /// Keep how the cells of this column are written, however many differ; may be given several times
    #[arg(long, value_name = "COLUMN")]
    pub text: Vec<String>,
    /// Replace the file if there is one
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
pub struct ExportArgs {
    /// Experiment file
    pub config: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Folder to write to
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// So many draws, from the first
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub draws: u32,
    /// Which repeat, counted from 1
    #[arg(long, value_name = "R", default_value_t = 1, allow_negative_numbers = true)]
    pub repeat: usize,
    /// Of which group, where there are groups
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// Replace files of an earlier export
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
pub struct SummaryArgs {
    /// Run directory
    pub run: PathBuf,
    /// Only this repeat [default: all draws of all repeats]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub repeat: Option<usize>,
    /// Only this group [default: each by itself]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// What every other group differs from this one by
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, conflicts_with_all = ["group", "pairwise"])]
    pub contrast: Option<String>,
    /// What all pairs of groups differ by
    #[arg(long, conflicts_with = "group")]
    pub pairwise: bool,
    /// Align the components of a mixture over draws first, as `npl relabel` does
    #[arg(long)]
    pub relabel: bool,
    /// Coefficients in the units of the data, intercept included, where columns were standardised
    #[arg(long, value_enum, default_value_t)]
    pub units: Units,
    /// e^beta instead of beta: odds ratios, rate ratios
    #[arg(long)]
    pub ratios: bool,
    /// Only parameters of such names, `*` for any characters, `?` for one (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
    /// Order of the parameters [default: that of the model]
    #[arg(long, value_enum)]
    pub sort: Option<Order>,
    /// An interval of this probability for each parameter, instead of quantiles
    #[arg(long, value_name = "P", value_parser = probability, allow_negative_numbers = true)]
    pub level: Option<f64>,
    /// Which interval [default: percentile]
    #[arg(long, value_enum)]
    pub interval: Option<Interval>,
    /// How probable it is that a parameter is above X
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub above: Option<f64>,
    /// How probable it is that a parameter is between A and B
    #[arg(long, value_name = "A,B", value_parser = between, allow_hyphen_values = true)]
    pub between: Option<std::ops::RangeInclusive<f64>>,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// In which order parameters are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    Name,
    /// The largest first.
    Mean,
    /// The least certain first.
    Sd,
    /// Those first that are farthest from 0, in standard deviations.
    Distance,
}

/// Two numbers in order.
fn between(text: &str) -> Result<std::ops::RangeInclusive<f64>, String> {
    let wrong = || format!("`{text}` is not two numbers in order, as -1,1 is");
    let (low, high) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| !v.is_nan());
    match (number(low), number(high)) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err(wrong()),
    }
}

/// What coefficients are told in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Units {
    /// Those of the prepared columns, as draws are.
    #[default]
    Model,
    /// Those of the file.
    Data,
}

#[derive(Args)]
pub struct RelabelArgs {
    /// Run directory
    pub run: PathBuf,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Where to write, the ending is the format; `-` is CSV on standard output [default: beside the draws]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of the copy, where its name does not tell [default: that of the draws]
    #[arg(long, value_enum)]
    pub format: Option<DrawFormat>,
}

#[derive(Args)]
pub struct PredictArgs {
    /// Run directory
    pub run: PathBuf,
    /// New rows: delimited text, gzipped or not; `-` is standard input
    pub new: PathBuf,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Probability of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = probability, allow_negative_numbers = true)]
    pub level: f64,
    /// Carry a column of the new rows through (repeatable)
    #[arg(long, value_name = "COLUMN")]
    pub keep: Vec<String>,
    /// This instead of what the model predicts (repeatable): an expression of the row's columns, of parameters and derived quantities
    /// of the draw, and of `prediction`; `NAME = EXPR` names it
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub value: Vec<String>,
    /// What every draw says instead of means and intervals
    #[arg(long)]
    pub draws: bool,
    #[arg(long, value_enum, default_value_t)]
    pub format: PredictionFormat,
    /// Where to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// By the draws of this repeat [default: the first]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub repeat: Option<usize>,
    /// All rows by the draws of this group [default: each row by those of its own]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// By the draws of this setting of a path [default: the first]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub setting: Option<usize>,
}

/// How predictions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PredictionFormat {
    /// Comma-separated, names first.
    #[default]
    Csv,
    /// An object of JSON on every line; what is no number is null.
    Ndjson,
    /// An array of NumPy, names in a file beside it.
    Npy,
}

/// Between 0 and 1.
fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|p| *p > 0.0 && *p < 1.0);
    number.ok_or_else(|| format!("`{text}` is no probability between 0 and 1"))
}

#[derive(Args)]
pub struct SamplesArgs {
    /// Run directory
    pub run: PathBuf,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Only columns of such names, `*` for any characters, `?` for one (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub columns: Vec<String>,
    #[arg(long, value_enum, default_value_t)]
    pub format: Text,
    /// Only this repeat
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub repeat: Option<usize>,
    /// Only this group
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// Only this setting of a path
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub setting: Option<usize>,
    /// Only draws of these numbers in each repeat: `7`, `1..100`, `101..`
    #[arg(long, value_name = "A..B", value_parser = draw_numbers)]
    pub draws: Option<RangeInclusive<usize>>,
    /// Leave out draws that failed
    #[arg(long)]
    pub drop_failed: bool,
    /// Leave out statistics, the columns that end in `__`
    #[arg(long)]
    pub no_statistics: bool,
    /// Align the components of a mixture over draws first, as `npl relabel` does
    #[arg(long)]
    pub relabel: bool,
    /// Write to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `A..B` with both ends, either of which may be left out; or one number.
fn draw_numbers(text: &str) -> Result<RangeInclusive<usize>, String> {
    let wrong = || "expected a number of a draw, or two as in 1..100".to_owned();
    let number = |text: &str, absent: usize| match text {
        "" => Ok(absent),
        text => text.parse().map_err(|_| wrong()),
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first, 1)?, number(last, usize::MAX)?),
        None => text.parse().map(|n| (n, n)).map_err(|_| wrong())?,
    };
    if first == 0 || first > last {
        return Err("draws are counted from 1, and the first comes before the last".into());
    }
    Ok(first..=last)
}

/// Formats of files of draws.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrawFormat {
    Csv,
    #[value(name = "csv.gz")]
    CsvGz,
    Npy,
    Parquet,
}

impl DrawFormat {
    pub fn of_draws(self) -> samples::Format {
        match self {
            DrawFormat::Csv => samples::Format::Csv,
            DrawFormat::CsvGz => samples::Format::CsvGz,
            DrawFormat::Npy => samples::Format::Npy,
            DrawFormat::Parquet => samples::Format::Parquet,
        }
    }
}

#[derive(Args)]
pub struct TableArgs {
    /// Run directories
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    /// The metric of every setting of a path, the best setting, and the simplest within one standard error of it
    #[arg(long)]
    pub path: bool,
    /// Which metric --path chooses by: lppd, mse, accuracy, auc or log_loss [default: the first that there is]
    #[arg(long, value_name = "NAME", requires = "path")]
    pub metric: Option<String>,
    /// Which values of the key that is varied are simpler [default: more gamma or alpha, less K or student_t.b]
    #[arg(long, value_enum, requires = "path")]
    pub simpler: Option<Simpler>,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Args)]
pub struct CompareArgs {
    /// Run directories
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Only the test rows of this group, of runs with `data.by` [default: those of all groups together]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// Folder of data files, looked in first
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Args)]
pub struct CoverageArgs {
    /// Experiment file
    pub config: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// How many data sets
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        allow_negative_numbers = true)]
    pub datasets: u32,
    /// Kinds of intervals [default: percentile]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub interval: Vec<Interval>,
    /// Probabilities of the intervals [default: 0.95]
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = probability,
        allow_negative_numbers = true)]
    pub level: Vec<f64>,
    /// Only these parameters, by name or pattern: `'beta.*'` (repeatable)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// The truth: `stated` by the simulation, the `minimum` of the loss over a very large sample, or a file with a column for each
    /// parameter [default: stated, where the model's parameters are those of the simulation, else minimum]
    #[arg(long, value_name = "WHAT")]
    pub truth: Option<String>,
    /// Rows of the very large sample, at least
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..),
        allow_negative_numbers = true)]
    pub truth_n: u32,
    /// Data sets are so many rows of the file of the experiment, drawn with replacement, as `--set data.resample=N` [default for
    /// data of a file: as many as it has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub resample: Option<u32>,
    /// Folder of the results [default: runs/<name>-coverage]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace what is in the folder, when the new results are there
    #[arg(long)]
    pub force: bool,
    /// Write what was made to disk about so often, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = super::commands::seconds,
        allow_negative_numbers = true)]
    pub keep_every: std::time::Duration,
    /// Stop after this time (90s, 45m, 3h50m), keep what was made, and exit with 143
    #[arg(long, value_name = "TIME", value_parser = super::commands::time)]
    pub time_limit: Option<std::time::Duration>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct PlotArgs {
    /// Run directories
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// What to draw [default: what says most about the run]
    #[arg(long, short)]
    pub kind: Option<String>,
    /// Parameters, by name or pattern: `'mu.*'` (several, or repeatable)
    #[arg(long, short, value_name = "NAME", num_args = 1..)]
    pub parameters: Vec<String>,
    /// Align the components of a mixture over draws first, as `npl relabel` does
    #[arg(long)]
    pub relabel: bool,
    /// Coefficients in the units of the data, intercept included, where columns were standardised
    #[arg(long, value_enum, default_value_t)]
    pub units: Units,
    /// File to write, .svg, .png or .pdf; `-` is the terminal [default: the terminal, if there is one]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Which repeat, counted from 1 [default: the first]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub repeat: Option<usize>,
    /// Which group, where there are groups (repeatable) [default: all, side by side]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Vec<String>,
    /// Which setting of a path, counted from 1 [default: the first]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub setting: Option<usize>,
    /// How runs are called in the legend, in their order
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub label: Vec<String>,
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// True values, as `name=value` or a CSV file with columns parameter and value; drawn dashed
    #[arg(long, value_name = "NAME=VALUE|FILE", num_args = 1.., allow_hyphen_values = false)]
    pub truth: Vec<String>,
    /// A normal density to compare a marginal with
    #[arg(long, value_name = "MEAN,SD", allow_hyphen_values = true)]
    pub normal: Option<String>,
    /// Range of the horizontal axis
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub xlim: Option<String>,
    /// Range of the vertical axis
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub ylim: Option<String>,
    /// Logarithmic horizontal axis, where all that is shown is above 0
    #[arg(long)]
    pub log: bool,
    /// Absolute medians along a path
    #[arg(long)]
    pub absolute: bool,
    /// At most so many parameters, where the figure chooses them
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    pub top: Option<u16>,
    /// Width in points, of which an inch has 72
    #[arg(long, value_name = "PT", value_parser = clap::value_parser!(u16).range(150..=5000), allow_negative_numbers = true)]
    pub width: Option<u16>,
    /// Height in points
    #[arg(long, value_name = "PT", value_parser = clap::value_parser!(u16).range(150..=10000), allow_negative_numbers = true)]
    pub height: Option<u16>,
    /// Where data files are looked for first, for figures that need them; then $NPL_DATA, ./data and the current folder
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Args)]
pub struct ReportArgs {
    /// Run directories
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// File to write; `-` is standard output [default: report.html in the first run directory]
    #[arg(long, short, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
    /// Figures and numbers of this repeat [default: figures of the first, numbers of all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub repeat: Option<usize>,
    /// Only this group, where there are groups (repeatable) [default: all, side by side]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub group: Vec<String>,
    /// Figures of this setting of a path [default: the first]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub setting: Option<usize>,
    /// How runs are called, in their order
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub label: Vec<String>,
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Where data files are looked for first; then $NPL_DATA, ./data and the current folder
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Args)]
pub struct AlphaArgs {
    /// Experiment whose prior is meant
    pub config: Option<PathBuf>,
    /// Wanted prior standard deviation of the mean
    #[arg(long, value_name = "SD", allow_negative_numbers = true)]
    pub sd: Option<f64>,
    /// Standard deviation of the base measure F_pi, if there is no experiment to take it from
    #[arg(long, value_name = "SD", allow_negative_numbers = true,
        conflicts_with_all = ["config", "set", "seed", "data_dir", "threads", "simd"])]
    pub base_sd: Option<f64>,
    /// Pseudo-samples of a draw, as prior.T [default: the Dirichlet process without truncation]
    #[arg(long = "T", value_name = "T", value_parser = clap::value_parser!(u32).range(1..=100_000_000),
        allow_negative_numbers = true, requires = "base_sd")]
    pub truncation: Option<u32>,
    /// Values of alpha to simulate the prior of theta for
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub values: Vec<f64>,
    /// Draws per value
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(2..),
        allow_negative_numbers = true)]
    pub draws: u32,
    #[command(flatten)]
    pub overrides: Overrides,
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// How tables are printed.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
    #[default]
    Text,
    Markdown,
    Csv,
    /// A list of objects; what is no number is null
    Json,
}
