//! `npl man`: the manual as a page for man(1), made of what the command line knows of itself.

use anyhow::Result;
use clap::{Arg, Command, CommandFactory};

use super::print;
use crate::cli::Cli;

pub fn man() -> Result<()> {
    let mut cli = Cli::command();
    cli.build();
    print(page(&cli).as_bytes())
}

fn page(cli: &Command) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = cli.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!(
        ".TH NPL 1 \"\" \"npl {version}\" \"User Commands\"\n.SH NAME\nnpl \\- {}\n.SH SYNOPSIS\n.B npl\n.I COMMAND\n[\\fIOPTIONS\\fR]\n\
         .SH DESCRIPTION\n{}\n",
        text(about.split(':').next().unwrap_or_default()),
        text(&about)
    );
    out += ".SH COMMANDS\n";
    let shown =
        || cli.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in shown() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        out += &format!(".TP\n.B npl {}\n{}\n", text(command.get_name()), text(&about));
    }
    for command in shown() {
        out += &section(command);
    }
    let after = cli.get_after_help().map(ToString::to_string).unwrap_or_default();
    out + ".SH EXAMPLES AND EXIT CODES\n" + &as_it_stands(&after)
}

fn section(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let mut out = format!(".SH NPL {}\n.nf\n{}\n.fi\n", command.get_name().to_uppercase(), text(usage));
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    out += &format!(".PP\n{}\n", text(&about.unwrap_or_default()));
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help") {
        out += &argument(arg);
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if after.is_empty() { out } else { out + ".PP\n" + &as_it_stands(&after) }
}

fn argument(arg: &Arg) -> String {
    let short = arg.get_short().map(|c| format!("-{c}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> =
        short.into_iter().chain(long).map(|name| format!("\\fB{}\\fR", text(&name))).collect();
    let takes = arg.get_action().takes_values();
    let values =
        arg.get_value_names().unwrap_or_default().iter().map(|name| format!("\\fI{}\\fR", text(name)));
    let values: Vec<String> = if takes { values.collect() } else { Vec::new() };
    let words = [names.join(", "), values.join(" ")]
        .iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>();
    let known: Vec<String> = match takes {
        true => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        false => Vec::new(),
    };
    let known = if known.is_empty() { String::new() } else { format!(" [{}]", known.join(", ")) };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!(".TP\n{}\n{}\n", words.join(" "), text(&format!("{help}{known}")))
}

/// Lines as they are.
fn as_it_stands(lines: &str) -> String {
    format!(".nf\n{}\n.fi\n", text(lines))
}

/// Text that roff prints as it is: no escapes, no line that begins as a request, and names for characters beyond ASCII.
fn text(words: &str) -> String {
    let character = |c: char| match c {
        '\\' => "\\e".to_owned(),
        '-' => "\\-".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", u32::from(c)),
    };
    let line = |line: &str| {
        let line: String = line.chars().map(character).collect();
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    };
    words.lines().map(line).collect::<Vec<_>>().join("\n")
}
