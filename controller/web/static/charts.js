"use strict";

// What a chart says at the place that is pointed at, or reached with the arrow keys. Everything it says is already in
// the page: `data-tips` has one text per bucket. Without this script the charts are drawn all the same.

const twoDigits = (number) => String(number).padStart(2, "0");

function bucketTime(figure, index) {
  const start = new Date(figure.dataset.start).getTime();
  const step = Number(figure.dataset.step) * 1000;
  const at = new Date(start + index * step);
  const clock = `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;
  return step < 3_600_000 ? clock : `${at.getFullYear()}-${twoDigits(at.getMonth() + 1)}-${twoDigits(at.getDate())} ${clock}`;
}

function showTip(figure, index) {
  const tips = JSON.parse(figure.dataset.tips);
  const plot = figure.querySelector(".plot");
  if (!plot || !tips.length) return;
  const place = Math.max(0, Math.min(tips.length - 1, index));
  figure.dataset.index = place;
  const share = (place + 0.5) / tips.length;
  let cursor = plot.querySelector(".cursor");
  if (!cursor) {
    cursor = plot.appendChild(document.createElement("span"));
    cursor.className = "cursor";
  }
  let tip = figure.querySelector(".tip");
  if (!tip) {
    tip = figure.appendChild(document.createElement("span"));
    tip.className = "tip";
    tip.setAttribute("role", "status");
  }
  cursor.style.left = `${100 * share}%`;
  tip.textContent = `${bucketTime(figure, place)} · ${tips[place]}`;
  tip.style.left = share < 0.5 ? `${100 * share}%` : "auto";
  tip.style.right = share < 0.5 ? "auto" : `${100 * (1 - share)}%`;
}

function hideTip(figure) {
  for (const part of figure.querySelectorAll(".cursor, .tip")) part.remove();
}

document.addEventListener("pointermove", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const plot = target && target.closest(".plot");
  const here = plot && plot.closest("[data-tips]");
  for (const figure of document.querySelectorAll("[data-tips]")) {
    if (figure !== here && !figure.contains(document.activeElement)) hideTip(figure);
  }
  if (!here) return;
  const box = plot.getBoundingClientRect();
  showTip(here, Math.floor(((event.clientX - box.left) / box.width) * JSON.parse(here.dataset.tips).length));
});

document.addEventListener("keydown", (event) => {
  const figure = event.target instanceof Element && event.target.matches(".plot") ? event.target.closest("[data-tips]") : null;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!figure || !step) return;
  event.preventDefault();
  const last = JSON.parse(figure.dataset.tips).length - 1;
  showTip(figure, figure.dataset.index === undefined ? last : Number(figure.dataset.index) + step);
});

document.addEventListener("focusout", (event) => {
  const figure = event.target instanceof Element && event.target.closest("[data-tips]");
  if (figure) hideTip(figure);
});
