/** Tasks of a job: order, summaries by role, and pages. */

import { ENDED, type ITask, type State } from '../../api/record';
import { memory, percent } from '../../format';

/** Rows of one page of the table. */
export const PAGE = 50;

/** All tasks of one role. */
export interface IRole {
  role: string;
  size: number;
  states: { state: State; count: number }[];
  summary: string;
}

const ORDER: readonly State[] = [
  'FAILED',
  'LOST',
  'RESTARTING',
  'SUBMITTING',
  'PENDING',
  'STARTING',
  'RUNNING',
  'FINISHING',
  'SUCCEEDED',
  'CANCELLED'
];

/** The chief's role first, then roles in order of appearance; tasks by index. */
export function ordered(tasks: readonly ITask[], chief: string): ITask[] {
  const roles = [...new Set(tasks.map(task => task.role))];
  const place = new Map(
    roles.map((role, n) => [role, role === chief.replace(/:.*/, '') ? -1 : n] as const)
  );
  return [...tasks].sort(
    (a, b) => (place.get(a.role) ?? 0) - (place.get(b.role) ?? 0) || a.index - b.index
  );
}

/** Tasks by relevance: failed, lost, restarting, waiting, and so on. */
export function byRelevance(tasks: readonly ITask[]): ITask[] {
  const rank = (task: ITask): number =>
    (ORDER.indexOf(task.state) + 1) * 2 - (task.restarts > 0 ? 1 : 0);
  return tasks
    .map((task, n) => ({ task, n }))
    .sort((a, b) => rank(a.task) - rank(b.task) || a.n - b.n)
    .map(({ task }) => task);
}

/** One summary per role. */
export function byRole(tasks: readonly ITask[]): IRole[] {
  const found = new Map<string, ITask[]>();
  for (const task of tasks) {
    found.set(task.role, [...(found.get(task.role) ?? []), task]);
  }
  return [...found].map(([role, members]) => ({
    role,
    size: members.length,
    states: countStates(members),
    summary: roleSummary(members)
  }));
}

function countStates(tasks: readonly ITask[]): { state: State; count: number }[] {
  return ORDER.map(state => ({
    state,
    count: tasks.filter(task => task.state === state).length
  })).filter(({ count }) => count > 0);
}

function roleSummary(tasks: readonly ITask[]): string {
  const parts: string[] = [];
  const going = tasks.filter(task => !ENDED.has(task.state));
  const progress = going.map(task => task.progress).filter(value => value !== null);
  if (progress.length) {
    parts.push(
      range(
        progress.map(value => Math.min(Math.max(value, 0), 1)),
        percent
      )
    );
  }
  const peaks = tasks.map(task => task.memory_peak).filter(value => value !== null);
  if (peaks.length) {
    parts.push(`≤ ${memory(Math.max(...peaks))}`);
  }
  const gpu = going.map(task => task.gpu_percent).filter(value => value !== null);
  if (gpu.length) {
    parts.push(`GPU ${range(gpu, value => `${value.toFixed(0)} %`)}`);
  }
  return parts.join(', ');
}

function range(values: readonly number[], format: (value: number) => string): string {
  const low = format(Math.min(...values));
  const high = format(Math.max(...values));
  return low === high ? low : `${low} – ${high}`;
}

/** `container_1732_0001_01_000003` as `000003`; other names are unchanged. */
export function shortContainer(name: string): string {
  return /^container_(?:e\d+_)?\d+_\d+_\d+_(\d+)$/.exec(name)?.[1] ?? name;
}

/** Mean number of used cores; null if the task is too young or was not measured. */
export function cores(task: ITask, now: number): number | null {
  if (task.cpu_seconds === null || task.started === null) {
    return null;
  }
  const seconds = (task.finished ?? now) - task.started;
  return seconds < 2 ? null : task.cpu_seconds / seconds;
}

/** Signal or exit code; empty if there is none. */
export function exitText(task: ITask): string {
  if (task.signal) {
    return `signal ${task.signal}`;
  }
  return task.exit_code === null ? '' : String(task.exit_code);
}

/** One page of the tasks; a number out of bounds selects the nearest page. */
export function page(
  tasks: readonly ITask[],
  number: number
): { rows: ITask[]; number: number; pages: number; from: number } {
  const pages = Math.max(Math.ceil(tasks.length / PAGE), 1);
  const fit = Math.min(Math.max(number, 0), pages - 1);
  return { rows: tasks.slice(fit * PAGE, (fit + 1) * PAGE), number: fit, pages, from: fit * PAGE };
}
