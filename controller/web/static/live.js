"use strict";

// Times in the reader's own zone, and a page that keeps itself fresh: the same address is fetched again and <main> is
// changed only where it differs, so scroll, focus, selection, half-filled forms and opened details stay as they are.

const LATEST_WAIT_MS = 60_000;

const pad = (number) => String(number).padStart(2, "0");

function localise(root) {
  const now = root.querySelector("[data-as-of] time");  // the page's clock; the reader's own may be wrong
  const today = new Date(now ? now.dateTime : Date.now()).toDateString();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const clock = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
    const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
    const exact = element.closest(".stages, .timeline");
    element.textContent = at.toDateString() === today ? clock : `${day} ${exact ? clock : clock.slice(0, 5)}`;
    if (element.dataset.short !== undefined) element.textContent = `${element.dataset.short === "day" ? `${day.slice(5)} ` : ""}${clock.slice(0, 5)}`;
    element.title = at.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
  }
}

// What charts.js hangs into a chart is not part of the page that comes anew.
const OURS = ".tip, .cursor";
const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || "" : "");
const alike = (one, other) => one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

function matchAttributes(now, next) {
  for (const { name } of [...now.attributes]) {
    if (!next.hasAttribute(name) && name !== "open" && name !== "data-index") now.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name === "open" || (name === "value" && now.nodeName === "INPUT" && now.type !== "hidden")) continue;
    if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
}

function match(now, next) {
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
    return;
  }
  matchAttributes(now, next);
  if (now.nodeName !== "SELECT") matchChildren(now, next);
}

// What is moved loses focus, selection and scroll: of the nodes that stay, the longest run already in order stands still.
function longestRun(nodes, order) {
  let longest = { length: 0 };
  const runs = [];
  for (const node of nodes) {
    const at = order.get(keyOf(node));
    let before = { length: 0 };
    for (const run of runs) if (run.at < at && run.length > before.length) before = run;
    runs.push({ node, at, before, length: before.length + 1 });
    if (before.length + 1 > longest.length) longest = runs.at(-1);
  }
  const standing = new Set();
  for (let run = longest; run.length; run = run.before) standing.add(run.node);
  return standing;
}

function firstByKey(parent, what) {
  return new Map([...parent.children].map((child, index) => [keyOf(child), what(child, index)]).filter(([key]) => key).reverse());
}

function matchChildren(now, next) {
  const order = firstByKey(next, (child, index) => index);
  const keyed = firstByKey(now, (child) => child);
  const staying = [...now.children].filter((child) => keyed.get(keyOf(child)) === child && order.has(keyOf(child)));
  const standing = longestRun(staying, order);
  for (const child of keyed.values()) if (!standing.has(child)) child.remove();
  let place = now.firstChild;
  const drop = () => {
    const after = place.nextSibling;
    if (!(place instanceof Element && place.matches(OURS))) place.remove();
    place = after;
  };
  for (const wanted of [...next.childNodes]) {
    const kept = keyed.get(keyOf(wanted));
    keyed.delete(keyOf(wanted));
    if (wanted.nodeType === Node.ELEMENT_NODE) while (place && place.nodeType !== Node.ELEMENT_NODE) drop();
    if (kept && alike(kept, wanted)) {
      if (standing.has(kept)) {
        while (place !== kept) drop();
        place = kept.nextSibling;
      } else {
        now.insertBefore(kept, place);
      }
      match(kept, wanted);
    } else if (place && !standing.has(place) && alike(place, wanted)) {
      const after = place.nextSibling;
      match(place, wanted);
      place = after;
    } else {
      const added = document.importNode(wanted, true);
      if (added.nodeName === "TR") added.classList.add("fresh");
      now.insertBefore(added, place);
    }
  }
  while (place) drop();
}

function say(state, text) {
  const place = document.querySelector("[data-live]");
  if (!place || place.textContent === text) return;
  place.dataset.state = state;
  place.textContent = text;
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(15_000) });
  if (answer.status >= 500) throw new Error(String(answer.status));
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!next.getElementById("main")) throw new Error("not a page");
  localise(next);
  matchChildren(document.getElementById("main"), next.getElementById("main"));
  const asOf = next.querySelector("[data-as-of]");
  if (asOf) matchChildren(document.querySelector("[data-as-of]"), asOf);
}

function keepFresh() {
  const every = Number(document.getElementById("main").dataset.refresh) * 1000;
  if (!every) return;
  let wait = every;
  const turn = async () => {
    if (!document.hidden) {
      try {
        await refresh();
        wait = every;
        say("live", "Live");
      } catch {
        wait = Math.min(wait * 2, LATEST_WAIT_MS);
        say("lost", "No answer; trying again");
      }
    }
    setTimeout(turn, wait);
  };
  say("live", "Live");
  setTimeout(turn, every);
}

// A single key goes to the search field, unless something is being written already.
document.addEventListener("keydown", (event) => {
  const writing = event.target instanceof Element && event.target.closest("input, select, textarea");
  if (event.key !== "/" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.querySelector(".search input").focus();
});

localise(document);
for (const log of document.querySelectorAll(".log pre")) log.scrollTop = log.scrollHeight;
keepFresh();
