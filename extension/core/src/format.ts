// Numbers as people read them: binary units, at most three significant places, one style everywhere.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** A pool without a limit reports one near 2^64. */
const UNLIMITED_BYTES = 2 ** 60;

export function isUnlimited(bytes: number): boolean {
  return bytes >= UNLIMITED_BYTES;
}

/** ["12.5", "MiB"], always three places, so that a live figure does not change its width: value and unit apart. */
export function bytesParts(bytes: number): [string, string] {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return [value.toFixed(digits), UNITS[unit] ?? 'B'];
}

/** "12.5 MiB", "8 MiB": as bytesParts(), without zeros behind the point where nothing else is there. */
export function bytes(count: number): string {
  const [value, unit] = bytesParts(count);
  return `${value.replace(/\.0+$/, '')} ${unit}`;
}

/** 1234567 as "1,234,567", whatever the page's locale: pictures and tests must not depend on it. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** 0 to "0", 12.34 to "12.3", 56789 to "56.8 k". */
export function rate(perSecond: number): string {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(1)} M`;
  if (perSecond >= 1e4) return `${(perSecond / 1e3).toFixed(1)} k`;
  if (perSecond >= 100 || perSecond === 0) return count(perSecond);
  return perSecond.toFixed(1);
}

export function duration(ns: number): string {
  const scale: [number, string][] = [
    [1e9 * 60, 'min'],
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'us'],
  ];
  for (const [size, unit] of scale) {
    if (ns >= size) {
      const value = ns / size;
      return `${value.toFixed(value >= 100 ? 0 : 1)} ${unit}`;
    }
  }
  return `${Math.max(0, Math.round(ns))} ns`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %` : '';
}

export function address(value: number): string {
  return `0x${value.toString(16)}`;
}
