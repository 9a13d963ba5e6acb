"use strict";

// A film plays while the mouse or the focus is on its card, or after a tap, unless less motion is wanted.
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
for (const film of document.querySelectorAll("article video")) {
  const card = film.closest("article");
  const play = () => { if (!still) film.play().catch(() => {}); };
  // Loading anew shows the poster.
  const stop = () => { if (!film.paused) film.load(); };
  const byMouse = (action) => (event) => { if (event.pointerType === "mouse") action(); };
  card.addEventListener("pointerenter", byMouse(play));
  card.addEventListener("pointerleave", byMouse(stop));
  card.addEventListener("focusin", play);
  card.addEventListener("focusout", stop);
  film.addEventListener("pointerup", (event) => {
    if (event.pointerType !== "mouse") (film.paused ? film.play() : film.load());
  });
}
for (const film of document.querySelectorAll("figure video")) if (!still) film.play().catch(() => {});

// Cards are shown that have the pressed tags and every word of the text.
const form = document.querySelector("form");
if (form) {
  const input = form.querySelector("input");
  const count = form.querySelector("output");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const tags = [...form.querySelectorAll("[aria-pressed=true]")].map((button) => button.value);
    let shown = 0;
    for (const card of document.querySelectorAll("article")) {
      const text = card.textContent.toLowerCase();
      const own = card.dataset.tags.split("|");
      card.hidden = !(words.every((word) => text.includes(word)) && tags.every((tag) => own.includes(tag)));
      shown += !card.hidden;
    }
    for (const section of document.querySelectorAll("section")) {
      section.hidden = !section.querySelector("article:not([hidden])");
    }
    count.textContent = `${shown} shown`;
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", filter);
  form.addEventListener("click", (event) => {
    if (event.target.value && event.target.ariaPressed !== null) {
      event.target.ariaPressed = String(event.target.ariaPressed !== "true");
      filter();
    }
  });
  filter();
}

// A button copies each block of code.
for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  const frame = document.createElement("div");
  frame.className = "copied";
  block.replaceWith(frame);
  frame.append(block, button);
}
