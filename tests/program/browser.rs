//! The page of runs in a browser: Debian's chromium without a window, spoken to over a pipe by the DevTools protocol. Says so
//! where there is no chromium.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Place, config};

/// Nothing a page does takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    asked: u64,
    /// Messages that answer no question.
    events: Vec<Value>,
}

impl Browser {
    /// Nothing if there is no chromium.
    fn start(profile: &Path) -> Option<Browser> {
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
            Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success())
        })?;
        // It reads messages at 3 and writes them at 4.
        let line = format!(
            "exec {program} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --remote-debugging-pipe --user-data-dir=\"$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut process = Command::new("sh")
            .arg("-c")
            .arg(line)
            .arg(profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (to, out) = (process.stdin.take()?, process.stdout.take()?);
        let from = listen(out);
        Some(Browser { process, to, from, asked: 0, events: Vec::new() })
    }

    /// Asks a question of a tab, or of the browser, and waits for its answer.
    fn ask(&mut self, tab: Option<&str>, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut question = json!({"id": self.asked, "method": method, "params": params});
        if let Some(tab) = tab {
            question["sessionId"] = json!(tab);
        }
        self.to.write_all(format!("{question}\0").as_bytes()).unwrap();
        self.to.flush().unwrap();
        let started = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(started.elapsed());
            let message = self.from.recv_timeout(left).unwrap_or_else(|e| panic!("{method}: {e}"));
            match message["id"] == json!(self.asked) {
                true => {
                    assert!(message["error"].is_null(), "{method}: {message}");
                    return message["result"].clone();
                }
                false => self.events.push(message),
            }
        }
    }

    /// What an expression is in a tab.
    fn value(&mut self, tab: &str, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask(Some(tab), "Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// A tab of this width with the page in it.
    fn open(&mut self, file: &Path, width: u32, scripts: bool) -> String {
        let target = self.ask(None, "Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = self.ask(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let tab = attached["sessionId"].as_str().unwrap().to_owned();
        let size = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500});
        self.ask(Some(&tab), "Emulation.setDeviceMetricsOverride", size);
        self.ask(Some(&tab), "Emulation.setScriptExecutionDisabled", json!({"value": !scripts}));
        for part in ["Page", "Runtime", "Log", "Network"] {
            self.ask(Some(&tab), &format!("{part}.enable"), json!({}));
        }
        self.events.clear();
        self.ask(Some(&tab), "Page.navigate", json!({"url": format!("file://{}", file.display())}));
        let started = Instant::now();
        while self.value(&tab, "location.protocol + document.readyState") != json!("file:complete") {
            assert!(started.elapsed() < PATIENCE, "{} does not load", file.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        tab
    }

    /// Errors and requests that the events so far tell of.
    fn complaints(&self) -> Vec<String> {
        let bad = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => true,
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                !url.starts_with("file://") && !url.starts_with("data:")
            }
            _ => false,
        };
        self.events.iter().filter(bad).map(Value::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Messages end in a zero byte.
fn listen(out: ChildStdout) -> Receiver<Value> {
    let (say, heard) = channel();
    std::thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut bytes = Vec::new();
        while out.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            let message = serde_json::from_slice(&bytes).unwrap_or_default();
            if say.send(message).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    heard
}

/// Elements that reach beyond the page, but for what scrolls in a box of its own.
const BEYOND: &str = "Array.from(document.querySelectorAll('body *')).filter(e => !e.closest('svg, .box, pre') && \
     e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))";

const FIGURES: &str = "Array.from(document.querySelectorAll('svg')).filter(s => s.checkVisibility()).map(s => { const r = \
     s.getBoundingClientRect(); return Math.min(r.width, r.height) })";

/// Pixels of the smallest letters of figures.
const LETTERS: &str = "Math.min(...Array.from(document.querySelectorAll('svg')).filter(s => s.checkVisibility()).flatMap(s => \
     Array.from(s.querySelectorAll('text')).map(t => parseFloat(getComputedStyle(t).fontSize) * \
     s.getBoundingClientRect().width / s.viewBox.baseVal.width)))";

/// Numbers of tables that have a column for each run which are out of sight.
const UNSEEN: &str = "Array.from(document.querySelectorAll('.by-run td, .grouped td')).filter(td => { \
     const range = document.createRange(); range.selectNodeContents(td); return range.getBoundingClientRect().right > innerWidth \
     }).map(td => td.textContent)";

#[test]
fn pages_load_fit_and_are_silent() {
    let place = Place::new();
    let Some(mut browser) = Browser::start(&place.path("profile")) else {
        println!("skipped: chromium is not installed");
        return;
    };
    for (name, set) in [("rr", "sampler.R=4"), ("advi", "method=advi"), ("two", "sampler.R=2")] {
        let toy = config("gmm_toy.toml");
        place.ok(&["run", &toy, "--set", set, "--set", "sampler.B=60", "--out", name]);
    }
    place.ok(&["report", "rr", "advi", "two", "--out", "three.html"]);
    place.ok(&["report", "rr", "--out", "one.html"]);
    for (name, figures) in [("one", 4), ("three", 6)] {
        for width in [390, 1280] {
            let case = format!("{name} at {width}");
            let tab = browser.open(&place.path(&format!("{name}.html")), width, true);
            let wide = browser.value(&tab, "document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(u64::from(width)), "{case}: {wide} pixels");
            assert_eq!(browser.value(&tab, BEYOND), json!([]), "{case}");
            let sizes = browser.value(&tab, FIGURES);
            let sizes: Vec<f64> = sizes.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
            assert!(sizes.len() >= figures && sizes.iter().all(|s| *s > 120.0), "{case}: {sizes:?}");
            let letters = browser.value(&tab, LETTERS).as_f64().unwrap();
            assert!(letters >= 8.5, "{case}: letters of {letters} pixels");
            assert_eq!(browser.value(&tab, UNSEEN), json!([]), "{case}");
            assert_eq!(browser.complaints(), Vec::<String>::new(), "{case}");
        }
    }
}

#[test]
fn columns_sort_and_nothing_needs_that() {
    let place = Place::new();
    let Some(mut browser) = Browser::start(&place.path("profile")) else {
        println!("skipped: chromium is not installed");
        return;
    };
    place.ok(&["run", &config("gmm_toy.toml"), "--set", "sampler.B=40", "--out", "rr"]);
    place.ok(&["report", "rr", "--out", "one.html"]);
    let means = "Array.from(document.querySelector('table.sortable').tBodies[0].rows).map(r => Number(r.cells[1].title))";
    let tab = browser.open(&place.path("one.html"), 1280, true);
    let numbers = |value: Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    let before = numbers(browser.value(&tab, means));
    let click = "document.querySelectorAll('table.sortable thead tr:last-child th')[1].click()";
    browser.value(&tab, click);
    let down = numbers(browser.value(&tab, means));
    assert!(down.is_sorted_by(|a, b| a >= b) && down != before, "{down:?}");
    browser.value(&tab, click);
    let up = numbers(browser.value(&tab, means));
    assert!(up.is_sorted() && up.len() == before.len(), "{up:?}");
    let plain = browser.open(&place.path("one.html"), 390, false);
    let sections = browser.value(&plain, "document.querySelectorAll('section, svg, table').length");
    let scripted = browser.value(&tab, "document.querySelectorAll('section, svg, table').length");
    assert_eq!(sections, scripted, "all is there without a script");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
