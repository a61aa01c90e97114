/** Calculations for charts: bounds, ticks, reduction of points, nearest point. No DOM. */

/** Points in order of time; null values were not measured and leave a gap in the line. */
export interface ICurve {
  t: readonly number[];
  v: readonly (number | null)[];
}

/** Smallest and largest finite value; null if there is none. */
export function extent(values: Iterable<number | null>): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value !== null && Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low > high ? null : [low, high];
}

/** About `count` round numbers that cover `low` to `high`. */
export function ticks(low: number, high: number, count: number): number[] {
  const top = high > low ? high : low + (Math.abs(low) || 1);
  const span = top - low;
  const raw = span / Math.max(count - 1, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5].find(factor => factor * power >= raw * 0.999) ?? 10);
  const first = Math.floor(low / step + 1e-9) * step;
  const found = [first];
  for (let n = 1; n <= 20 && (found.at(-1) ?? 0) < top - step * 1e-9; n++) {
    found.push(Number((first + n * step).toPrecision(12)));
  }
  return found;
}

const STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800,
  604800
];

/** At most `count` round numbers of seconds from 0 to `span`. */
export function timeTicks(span: number, count: number): number[] {
  const step =
    STEPS.find(seconds => span / seconds < count) ?? 604800 * Math.ceil(span / 604800 / count);
  return Array.from({ length: Math.floor(span / step + 1e-9) + 1 }, (_, n) => n * step);
}

/**
 * Reduce a curve to at most `points` points: keep the lowest and the highest of each bucket.
 *
 * Keeps gaps and the first and last point.
 */
export function thin(curve: ICurve, points: number): ICurve {
  const { t, v } = curve;
  if (t.length <= points || points < 4) {
    return curve;
  }
  const kept = new Set<number>([0, t.length - 1]);
  const buckets = Math.floor((points - 2) / 2);
  const width = t.length / buckets;
  for (let n = 0; n < buckets; n++) {
    for (const index of lowAndHigh(v, Math.floor(n * width), Math.floor((n + 1) * width))) {
      kept.add(index);
    }
  }
  const order = [...kept].sort((a, b) => a - b);
  return { t: order.map(i => t[i] ?? 0), v: order.map(i => v[i] ?? null) };
}

function lowAndHigh(v: readonly (number | null)[], from: number, to: number): number[] {
  let low = -1;
  let high = -1;
  for (let i = from; i < to; i++) {
    const value = v[i] ?? null;
    if (value !== null) {
      low = low < 0 || value < (v[low] ?? Infinity) ? i : low;
      high = high < 0 || value > (v[high] ?? -Infinity) ? i : high;
    }
  }
  // One point represents the gap.
  return low < 0 ? [from] : [low, high];
}

/** Index of the point nearest to `time`; -1 if there is none. */
export function nearest(t: readonly number[], time: number): number {
  let low = 0;
  let high = t.length - 1;
  if (high < 0) {
    return -1;
  }
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((t[middle] ?? 0) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const before = t[low - 1];
  return before !== undefined && time - before <= (t[low] ?? 0) - time ? low - 1 : low;
}

/** Points of polylines: one string per stretch without a gap. */
export function strokes(
  curve: ICurve,
  x: (time: number) => number,
  y: (value: number) => number
): string[] {
  const found: string[][] = [];
  let open: string[] = [];
  curve.t.forEach((time, i) => {
    const value = curve.v[i] ?? null;
    if (value === null || !Number.isFinite(value)) {
      open = [];
      return;
    }
    if (!open.length) {
      found.push(open);
    }
    open.push(`${x(time).toFixed(1)},${y(value).toFixed(1)}`);
  });
  return found.map(points => points.join(' '));
}
