(() => {
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  const most = 12;

  // On a narrow screen the pages come first, so that their list is closed.
  if (matchMedia("(max-width: 52rem)").matches) {
    document.querySelector("nav .menu").open = false;
  }

  // How well an entry fits to a word; 0 if not at all.
  const fit = (entry, word) => {
    const title = entry.t.toLowerCase();
    const parts = title.split(/[^a-z0-9]+/);
    if (title === word) return 100;
    if (parts.includes(word)) return 60;
    if (title.startsWith(word)) return 50;
    if (parts.some((part) => part.startsWith(word))) return 35;
    if (title.includes(word)) return 20;
    if (entry.a.toLowerCase().includes(word)) return 8;
    return entry.w.includes(word) ? 2 : 0;
  };

  const search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const scored = ENTRIES.map((entry) => {
      const fits = words.map((word) => fit(entry, word));
      // Every word must be found. A short title is more about it than a long one.
      const score = fits.includes(0) ? 0 : fits.reduce((a, b) => a + b, 0) - entry.t.length / 100;
      return { entry, score };
    });
    return scored.filter((one) => one.score > 0).sort((a, b) => b.score - a.score).slice(0, most);
  };

  const show = () => {
    found.replaceChildren();
    found.hidden = input.value.trim() === "";
    if (found.hidden) return;
    const results = search(input.value);
    for (const { entry } of results) {
      const link = document.createElement("a");
      link.href = entry.u;
      const kind = document.createElement("small");
      kind.textContent = entry.a ? `${entry.k}: ${entry.a}` : entry.k;
      link.append(entry.t, kind);
      const item = document.createElement("li");
      item.append(link);
      found.append(item);
    }
    if (results.length === 0) {
      const none = document.createElement("li");
      none.className = "none";
      none.textContent = "Nothing was found.";
      found.append(none);
    }
  };

  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".search")) found.hidden = true;
  });
  // A result may be on this page: then nothing is loaded, and the list is closed here.
  found.addEventListener("click", () => {
    found.hidden = true;
    input.value = "";
  });
  document.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "/" && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === "Escape") {
      found.hidden = true;
      input.blur();
    } else if (found.hidden || links.length === 0) {
      return;
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp") {
      event.preventDefault();
      (at > 0 ? links[at - 1] : input).focus();
    } else if (event.key === "Enter" && document.activeElement === input) {
      event.preventDefault();
      links[0].click();
    }
  });
  // A search in the address: index.html?q=lock
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    show();
  }
})();
