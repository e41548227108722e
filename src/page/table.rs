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
        let shown = if value.is_nan() { String::new() } else { shown };
        Cell { shown, value: Some(value) }
    }

    pub fn count(count: usize) -> Cell {
        Cell::text(count.to_string())
    }

    pub fn is_absent(&self) -> bool {
        self.shown.is_empty()
    }

    fn html(&self) -> Html {
        let inside = Html::text(if self.is_absent() { "–" } else { &self.shown });
        match self.value {
            Some(value) => Html::with("td", &[("title", &format!("{value:?}"))], inside),
            None => Html::tag("td", inside),
        }
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
        let row = |(name, cells): &(Html, Vec<Cell>)| {
            let name = Html::with("th", &[("scope", "row")], name.clone());
            Html::tag("tr", std::iter::once(name).chain(cells.iter().map(Cell::html)).collect())
        };
        let body = Html::tag("tbody", self.rows.iter().map(row).collect());
        let class = if self.sortable { "sortable" } else { "plain" };
        let head = if head.is_empty() { head } else { Html::tag("thead", head) };
        let table = Html::with("table", &[("class", class)], head.and(body));
        // Who has no pointer scrolls the box by keys: it can be focused.
        let class = if self.sortable { "box long" } else { "box" };
        let boxed = [("class", class), ("tabindex", "0"), ("role", "region"), ("aria-label", "table")];
        Html::with("div", &boxed, table)
    }
}
