"use strict";

// A thumbnail plays while the pointer or the focus is on its card, unless less motion is wanted.
const still = matchMedia("(prefers-reduced-motion: reduce)");
for (const card of document.querySelectorAll("article")) {
  const picture = card.querySelector("img");
  const thumbnail = picture.getAttribute("src");
  const play = () => { if (!still.matches) picture.src = picture.dataset.film; };
  const stop = () => { picture.src = thumbnail; };
  card.addEventListener("pointerenter", play);
  card.addEventListener("pointerleave", stop);
  card.addEventListener("focusin", play);
  card.addEventListener("focusout", stop);
}

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
