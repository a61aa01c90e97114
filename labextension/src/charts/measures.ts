/** Charts of a job's metrics: one per measure, one line per task. No DOM. */

import type { ISeries } from '../api/types';
import { type ICurve, thin } from './scale';

/** Points of a line in a small chart. */
const POINTS = 240;
/** Number of scalars that are shown initially. */
export const SCALARS = 6;

/** The line of one task, with a curve per attempt. */
export interface ILine {
  task: string;
  curves: ICurve[];
}

export type Quantity = 'cores' | 'memory' | 'percent' | 'figure';

/** One chart. */
export interface IMeasure {
  key: string;
  /** Name of the scalar, or of a resource in `RESOURCES`. */
  name: string;
  kind: 'resource' | 'scalar';
  quantity: Quantity;
  lines: ILine[];
}

const RESOURCES: readonly { name: string; quantity: Quantity }[] = [
  { name: 'cpu_percent', quantity: 'cores' },
  { name: 'memory', quantity: 'memory' },
  { name: 'gpu_percent', quantity: 'percent' },
  { name: 'gpu_memory', quantity: 'memory' }
];

/** The charts of a job: scalars in order of appearance, then resource usage. */
export function measures(series: readonly ISeries[]): IMeasure[] {
  const scalars = [
    ...new Set(series.filter(one => one.kind === 'scalar').map(one => one.name))
  ].map(name => make('scalar', name, 'figure', series));
  const resources = RESOURCES.map(({ name, quantity }) => make('resource', name, quantity, series));
  return [...scalars, ...resources].filter(measure => measure.lines.length);
}

function make(
  kind: 'resource' | 'scalar',
  name: string,
  quantity: Quantity,
  series: readonly ISeries[]
): IMeasure {
  const lines = new Map<string, ICurve[]>();
  for (const one of series) {
    if (one.kind === kind && one.name === name && isCurve(one)) {
      const v = quantity === 'cores' ? one.v.map(x => (x === null ? null : x / 100)) : one.v;
      lines.set(one.task, [...(lines.get(one.task) ?? []), thin({ t: one.t, v }, POINTS)]);
    }
  }
  return {
    key: `${kind} ${name}`,
    name,
    kind,
    quantity,
    lines: [...lines]
      .map(([task, curves]) => ({
        task,
        curves: curves.sort((a, b) => (a.t[0] ?? 0) - (b.t[0] ?? 0))
      }))
      .sort((a, b) => a.task.localeCompare(b.task, undefined, { numeric: true }))
  };
}

/** A curve needs at least two measured points. */
function isCurve(series: ISeries): boolean {
  return series.v.filter(value => value !== null).length > 1;
}

/** Last, mean, lowest and highest value of a line. */
export function lineSummary(line: ILine): {
  last: number;
  mean: number;
  low: number;
  high: number;
} {
  const values = line.curves.flatMap(curve => curve.v.filter(value => value !== null));
  return {
    last: values.at(-1) ?? NaN,
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    low: values.reduce((a, b) => Math.min(a, b), Infinity),
    high: values.reduce((a, b) => Math.max(a, b), -Infinity)
  };
}
