/// <reference lib="dom" />

/** Makes an element with properties. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Partial<HTMLElementTagNameMap[Tag]> = {},
): HTMLElementTagNameMap[Tag] {
  return Object.assign(document.createElement(tag), properties);
}

/** Finds an element of the page by its id. */
export function byID<Tag extends keyof HTMLElementTagNameMap>(
  id: string,
): HTMLElementTagNameMap[Tag] {
  return document.getElementById(id) as HTMLElementTagNameMap[Tag];
}

/** Writes a number of bytes for people. */
export function size(bytes: number): string {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (bytes < 1024) return `${Math.round(bytes)} ${unit}`;
    bytes /= 1024;
  }
  return `${bytes.toFixed(1)} GiB`;
}
