/* The search box, and the button between light and dark. search-index.js sets `searchIndex`, a list of
 * [title, address, text]. */
(function () {
  "use strict";
  const root = document.body.dataset.root;
  const input = document.getElementById("search");
  const results = document.getElementById("results");

  // How well an entry answers all words; 0: not at all. Titles count more than text.
  function score(entry, words) {
    const title = entry[0].toLowerCase(), text = entry[2].toLowerCase();
    let sum = 0;
    for (const word of words) {
      const at = title.indexOf(word);
      if (at < 0 && !text.includes(word)) return 0;
      sum += at < 0 ? 1 : title === word || title === "wg_" + word ? 20 : at === 0 || title[at - 1] === "_" ? 8 : 5;
    }
    return sum - title.length / 100;
  }

  function show() {
    const words = input.value.toLowerCase().split(/[^a-z0-9_]+/).filter(Boolean);
    results.textContent = "";
    if (!words.length) return;
    const found = searchIndex.map((entry) => [score(entry, words), entry])
      .filter((pair) => pair[0] > 0).sort((a, b) => b[0] - a[0]).slice(0, 12);
    for (const [, entry] of found) {
      const link = document.createElement("a");
      link.href = root + entry[1];
      link.textContent = entry[0];
      const where = document.createElement("small");
      where.textContent = entry[2].slice(0, 90);
      const item = document.createElement("li");
      link.append(where);
      item.append(link);
      results.append(item);
    }
    if (!found.length) results.textContent = "nothing found";
  }

  input.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) {
      input.focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      input.value = "";
      show();
    } else if (event.key === "Enter" && document.activeElement === input && results.querySelector("a")) {
      location.href = results.querySelector("a").href;
    }
  });

  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
  });
  const query = new URLSearchParams(location.search).get("q");
  if (query) {
    input.value = query;
    show();
  }
})();
