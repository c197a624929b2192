// The timeline as SVG, for the saved file: its colours are the style's variables, so that they follow the reader's colour scheme, and it stays sharp.
import type { Colors, Pen } from "./timelineLayout.js";

const namespace = "http://www.w3.org/2000/svg";
const decimals = 100; // coordinates are rounded to this part of a pixel

const rounded = (value: number) => String(Math.round(value * decimals) / decimals);

/** Draws as a canvas does, by adding elements to `root`. A clip applies to texts only. */
class SvgPen implements Pen {
  fillStyle: unknown = "";
  strokeStyle: unknown = "";
  font = "";
  globalAlpha = 1;
  lineWidth = 1;
  textBaseline: CanvasTextBaseline = "middle"; // the only one that is drawn
  #x = 0; // translation
  #y = 0;
  #path = "";
  #box: [number, number, number, number] | undefined; // the rectangle of the path
  #clip: [number, number, number, number] | undefined;
  readonly #saved: Array<() => void> = [];

  constructor(private readonly root: SVGElement) {}

  #add(parent: SVGElement, name: string, attributes: Record<string, string>) {
    const element = document.createElementNS(namespace, name) as SVGElement;
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "style") element.style.cssText = value; // the page's policy forbids the attribute
      else element.setAttribute(key, value);
    }
    parent.append(element);
    return element;
  }
  #place = ([x, y, width, height]: readonly [number, number, number, number]) => ({ x: rounded(x + this.#x), y: rounded(y + this.#y), width: rounded(Math.max(0, width)), height: rounded(Math.max(0, height)) });
  #filled = () => `fill:${this.fillStyle}${this.globalAlpha < 1 ? `;opacity:${this.globalAlpha}` : ""}`;

  clearRect() { this.root.replaceChildren(); }
  save() {
    const { fillStyle, strokeStyle, font, globalAlpha, lineWidth } = this;
    const [x, y, clip] = [this.#x, this.#y, this.#clip];
    this.#saved.push(() => {
      Object.assign(this, { fillStyle, strokeStyle, font, globalAlpha, lineWidth });
      [this.#x, this.#y, this.#clip] = [x, y, clip];
    });
  }
  restore() { this.#saved.pop()?.(); }
  translate(x: number, y: number) {
    this.#x += x;
    this.#y += y;
  }
  beginPath() {
    this.#path = "";
    this.#box = undefined;
  }
  moveTo(x: number, y: number) { this.#path += `M${rounded(x + this.#x)} ${rounded(y + this.#y)}`; }
  lineTo(x: number, y: number) { this.#path += `L${rounded(x + this.#x)} ${rounded(y + this.#y)}`; }
  rect(x: number, y: number, width: number, height: number) { this.#box = [x, y, width, height]; }
  roundRect(x: number, y: number, width: number, height: number) { this.#box = [x, y, width, height]; }
  clip() { this.#clip = this.#box; }
  fill() {
    if (this.#box) this.#add(this.root, "rect", { ...this.#place(this.#box), rx: "2", style: this.#filled() });
    else this.#add(this.root, "path", { d: `${this.#path}Z`, style: this.#filled() });
  }
  fillRect(x: number, y: number, width: number, height: number) { this.#add(this.root, "rect", { ...this.#place([x, y, width, height]), style: this.#filled() }); }
  strokeRect(x: number, y: number, width: number, height: number) {
    this.#add(this.root, "rect", { ...this.#place([x, y, width, height]), style: `fill:none;stroke:${this.strokeStyle};stroke-width:${this.lineWidth}` });
  }
  fillText(text: string, x: number, y: number) {
    let parent = this.root;
    let [left, top] = [x + this.#x, y + this.#y];
    if (this.#clip) {
      if (this.#clip[2] <= 0) return;
      parent = this.#add(parent, "svg", this.#place(this.#clip)); // an inner one clips
      [left, top] = [x - this.#clip[0], y - this.#clip[1]];
    }
    this.#add(parent, "text", { x: rounded(left), y: rounded(top), style: `font:${this.font};dominant-baseline:central;${this.#filled()}` }).textContent = text;
  }
}

/** What `draw` draws, `width` × `height` pixels. `names`: the style's variable of each colour, without `--`. */
export function timelineSvg(width: number, height: number, names: Record<keyof Colors, string>, draw: (pen: Pen, colors: Colors) => void): SVGElement {
  const root = document.createElementNS(namespace, "svg");
  root.setAttribute("viewBox", `0 0 ${rounded(width)} ${rounded(height)}`);
  root.setAttribute("class", "timeline-image");
  root.setAttribute("role", "img");
  draw(new SvgPen(root), Object.fromEntries(Object.entries(names).map(([key, name]) => [key, `var(--${name})`])) as unknown as Colors);
  return root;
}
