//! Tables that scroll within their own box and can be sorted by their columns.

use super::html::Html;
use crate::words::number;

/// What stands in a place of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    shown: String,
    /// In full; seen on hovering, and sorted by.
    value: Option<f64>,
}

impl Cell {
    pub fn text(shown: impl Into<String>) -> Cell {
        Cell { shown: shown.into(), value: None }
    }

    pub fn absent() -> Cell {
        Cell::text("")
    }

    /// A number with no more digits than its Monte Carlo error allows.
    pub fn number(value: f64, error: f64) -> Cell {
        Cell::value(number(value, error), value)
    }

    pub fn value(shown: String, value: f64) -> Cell {
        if value.is_nan() { Cell::absent() } else { Cell { shown, value: Some(value) } }
    }

    pub fn count(count: usize) -> Cell {
        Cell::text(count.to_string())
    }

    pub fn is_absent(&self) -> bool {
        self.shown.is_empty()
    }

    /// With the run that it is of, where a narrow screen has no room for that in a title.
    fn html(&self, run: Option<&str>) -> Html {
        let inside = Html::text(if self.is_absent() { "–" } else { &self.shown });
        let value = self.value.map(|value| format!("{value:?}"));
        let title = value.as_deref().map(|value| ("title", value));
        let attributes: Vec<(&str, &str)> =
            title.into_iter().chain(run.map(|run| ("data-run", run))).collect();
        Html::with("td", &attributes, inside)
    }
}

/// Rows with a name each.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Titles over several columns: how many.
    groups: Vec<(String, usize)>,
    titles: Vec<String>,
    rows: Vec<(Html, Vec<Cell>)>,
    sortable: bool,
    /// Columns are runs.
    by_run: bool,
}

impl Table {
    /// The first title is that of the names of the rows.
    pub fn new(titles: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { titles: titles.into_iter().map(Into::into).collect(), ..Table::default() }
    }

    /// A table whose columns can be sorted by.
    pub fn sortable(titles: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { sortable: true, ..Table::new(titles) }
    }

    /// A table with a column for each of these runs; of one run, with this title.
    pub fn by_run(labels: &[&str], title: &str) -> Table {
        let titles = if labels.len() == 1 { &[title][..] } else { labels };
        Table { by_run: labels.len() > 1, ..Table::new(std::iter::once(&"").chain(titles).copied()) }
    }

    pub fn grouped(self, groups: Vec<(String, usize)>) -> Table {
        Table { groups, ..self }
    }

    pub fn row(&mut self, name: &str, cells: Vec<Cell>) {
        self.rows.push((Html::text(name), cells));
    }

    /// A row whose name is explained; left out if it says nothing of any run.
    pub fn explained(&mut self, name: &str, why: &str, cells: Vec<Cell>) {
        if cells.iter().all(Cell::is_absent) {
            return;
        }
        let why = Html::with("span", &[("class", "why")], Html::text(why));
        self.rows.push((Html::text(name).and(why), cells));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn html(&self) -> Html {
        let heading = |title: &String| Html::with("th", &[("scope", "col")], Html::text(title));
        let mut head = Html::none();
        if !self.groups.is_empty() {
            let group = |(title, columns): &(String, usize)| {
                let attributes = [("scope", "colgroup"), ("colspan", &columns.to_string())];
                Html::with("th", &attributes, Html::text(title))
            };
            let corner = Html::tag("td", Html::none());
            let groups: Html = std::iter::once(corner).chain(self.groups.iter().map(group)).collect();
            head.extend([Html::with("tr", &[("class", "groups")], groups)]);
        }
        if self.titles.iter().any(|title| !title.is_empty()) {
            head.extend([Html::tag("tr", self.titles.iter().map(heading).collect())]);
        }
        let width = self.groups.first().map_or(1, |(_, columns)| *columns);
        let run = |j: usize| match self.groups.is_empty() {
            true => self.titles.get(j + 1).filter(|_| self.by_run).map(String::as_str),
            false if j.is_multiple_of(width) => self.groups.get(j / width).map(|(run, _)| run.as_str()),
            false => None,
        };
        let row = |(name, cells): &(Html, Vec<Cell>)| {
            let name = Html::with("th", &[("scope", "row")], name.clone());
            let cells = cells.iter().enumerate().map(|(j, cell)| cell.html(run(j)));
            Html::tag("tr", std::iter::once(name).chain(cells).collect())
        };
        let body = Html::tag("tbody", self.rows.iter().map(row).collect());
        let class = if self.sortable { "sortable" } else { "plain" };
        let class = match (self.by_run, self.groups.is_empty(), self.titles.len() - 1) {
            (_, false, _) => format!("{class} grouped"),
            (true, _, 2) => format!("{class} by-run two"),
            (true, _, 3) => format!("{class} by-run three"),
            (true, ..) => format!("{class} by-run many"),
            _ => class.to_owned(),
        };
        let head = if head.is_empty() { head } else { Html::tag("thead", head) };
        let table = Html::with("table", &[("class", &class)], head.and(body));
        // Who has no pointer scrolls the box by keys: it can be focused.
        let class = if self.sortable { "box long" } else { "box" };
        let boxed = [("class", class), ("tabindex", "0"), ("role", "region"), ("aria-label", "table")];
        Html::with("div", &boxed, table)
    }
}
