// Faults of an open page for readers without eyes, mouse or sharp sight, as lines; an empty list if there are none.
(() => {
  const faults = [];
  const about = (node) => `${node.tagName.toLowerCase()}${node.id ? `#${node.id}` : ""} '${(node.textContent || "").trim().slice(0, 30)}'`;
  const isShown = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  if (!document.documentElement.lang) faults.push("the page has no language");
  if (!document.title.trim()) faults.push("the page has no title");
  for (const picture of document.querySelectorAll("img:not([alt])")) faults.push(`${about(picture)} has no alt`);
  for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) faults.push(`${about(node)} jumps the focus order`);

  // Headings descend by one level at a time from a single first.
  const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].filter(isShown).map((node) => [Number(node.tagName[1]), about(node)]);
  if (levels.filter(([level]) => level === 1).length !== 1) faults.push("the page has not exactly one h1");
  levels.forEach(([level, words], place) => {
    if (level > (place ? levels[place - 1][0] + 1 : 1)) faults.push(`heading ${words} skips a level`);
  });

  // Contrast as in WCAG 2.2, https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio.
  const numbers = (color) => {
    const found = color.match(/[\d.]+/g).map(Number);
    const scale = color.startsWith("color(") ? 255 : 1;
    return [...found.slice(0, 3).map((value) => value * scale), found[3] ?? 1];
  };
  const over = (top, below) => [...[0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]), 1];
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark");
  const grounds = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const { backgroundColor, backgroundImage } = getComputedStyle(at);
      const painted = backgroundImage.match(/(rgba?|color)\([^)]*\)/g);
      if (painted) return painted.map((color) => layers.reduceRight((below, top) => over(top, below), numbers(color)));
      layers.push(numbers(backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return [layers.reduceRight((below, top) => over(top, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1])];
  };
  const faint = (node, color) => {
    const { fontSize, fontWeight } = getComputedStyle(node);
    const isLarge = parseFloat(fontSize) >= 24 || (parseFloat(fontSize) >= 18.66 && Number(fontWeight) >= 700);
    let opacity = 1;
    for (let at = node; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    for (const ground of grounds(node)) {
      const ink = numbers(color);
      const [a, b] = [luminance(over([...ink.slice(0, 3), ink[3] * opacity], ground)), luminance(ground)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < (isLarge ? 3 : 4.5)) faults.push(`${about(node)} has a contrast of ${ratio.toFixed(2)}`);
    }
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { parentElement: node, data } = texts.currentNode;
    if (!data.trim() || node.closest("script, style, option, [aria-hidden=true], :disabled") || !isShown(node)) continue;
    const style = getComputedStyle(node);
    faint(node, node.closest("svg") ? style.fill : style.color);
  }
  for (const node of document.querySelectorAll("input[type=number], input[type=search], select")) {
    if (!isShown(node)) continue;
    faint(node, getComputedStyle(node).color);
    if (node.placeholder) faint(node, getComputedStyle(node, "::placeholder").color);
  }
  return [...new Set(faults)];
})()
