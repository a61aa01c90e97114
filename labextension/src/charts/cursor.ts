/** Values of all lines of a chart at one time. No DOM. */

import { figure } from '../format';
import { type ICurve, nearest } from './scale';

/** Up to this number of lines, values are listed individually. */
export const MAX_LISTED = 6;

/** One line of a chart, with a curve per attempt. */
export interface IChartLine {
  name: string;
  curves: readonly ICurve[];
}

/** A time and the values of the lines. */
export interface ICursor {
  time: number;
  values: { name: string; value: number; at: number; line: number }[];
}

/** One value, or the range of the values of all lines. */
export function range(cursor: ICursor): string {
  const numbers = cursor.values.map(({ value }) => value);
  if (!numbers.length) {
    return '–';
  }
  const [low, high] = [figure(Math.min(...numbers)), figure(Math.max(...numbers))];
  return low === high ? low : `${low} – ${high}`;
}

/** The values as text, for screen readers. */
export function spokenValues(cursor: ICursor, unit: string): string {
  const { values } = cursor;
  const words =
    values.length > 1 && values.length <= MAX_LISTED
      ? values.map(({ name, value }) => `${name} ${figure(value)}`).join(', ')
      : range(cursor);
  return unit ? `${words} ${unit}` : words;
}

/** The values at a time; lines without a point near it are omitted. */
export function cursorAt(lines: readonly IChartLine[], time: number): ICursor {
  const values: ICursor['values'] = [];
  lines.forEach((line, n) => {
    const curve =
      line.curves.filter(one => (one.t[0] ?? Infinity) <= time).at(-1) ?? line.curves[0];
    if (!curve) {
      return;
    }
    const index = nearest(curve.t, time);
    const value = curve.v[index] ?? null;
    const at = curve.t[index];
    if (value !== null && at !== undefined && Math.abs(at - time) <= maxDistance(curve)) {
      values.push({ name: line.name, value, at, line: n });
    }
  });
  return { time, values };
}

/** Maximum distance from a point at which its value is shown: four mean distances of points. */
function maxDistance(curve: ICurve): number {
  const span = (curve.t.at(-1) ?? 0) - (curve.t[0] ?? 0);
  return Math.max(5, (4 * span) / Math.max(curve.t.length - 1, 1));
}

/** The times of all points, sorted. */
export function allTimes(lines: readonly IChartLine[]): number[] {
  const found = new Set(lines.flatMap(line => line.curves.flatMap(curve => [...curve.t])));
  return [...found].sort((a, b) => a - b);
}

/** The index to which a key moves from `at`; null for other keys. */
export function step(key: string, at: number, length: number): number | null {
  const far = Math.max(Math.round(length / 10), 1);
  const moves: Record<string, number> = {
    ArrowLeft: at - 1,
    ArrowDown: at - 1,
    ArrowRight: at + 1,
    ArrowUp: at + 1,
    PageDown: at - far,
    PageUp: at + far,
    Home: 0,
    End: length - 1
  };
  const next = moves[key];
  return next === undefined ? null : Math.min(Math.max(next, 0), length - 1);
}
