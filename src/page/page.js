
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  table.classList.add("live");
  const heads = table.querySelectorAll("thead tr:last-child th");
  const key = (row, j) => {
    const cell = row.cells[j];
    const text = cell.title || cell.textContent;
    const number = Number(text);
    return text.trim() === "" ? null : Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  heads.forEach((head, j) => {
    const sort = () => {
      const up = head.getAttribute("aria-sort") === "descending" || (j === 0 && !head.hasAttribute("aria-sort"));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = Array.from(table.tBodies[0].rows, (row) => [key(row, j), row]);
      rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : up ? compare(a, b) : compare(b, a)));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    };
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sort();
      }
    });
  });
}
