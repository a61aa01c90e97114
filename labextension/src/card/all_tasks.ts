
import type { ITask } from '../api/job_types';
import type { IRest } from '../tokens';

/** Tasks per request, and the largest number of tasks of a job. */
const PAGE = 200;
const MOST = 4096;

/** All tasks by name, page by page; stops early when `isCancelled` returns true. */
export async function allTasks(
  rest: Pick<IRest, 'tasks'>,
  job: string,
  over: () => boolean
): Promise<ReadonlyMap<string, ITask>> {
  const found = new Map<string, ITask>();
  for (let offset = 0; offset < MOST && !over(); offset += PAGE) {
    const { tasks, total } = await rest.tasks(job, offset, PAGE);
    for (const task of tasks) {
      found.set(task.task, task);
    }
    if (!tasks.length || offset + PAGE >= total) {
      break;
    }
  }
  return found;
}

/** The tasks of a view, which are newer, merged with the other loaded tasks. */
export function withOthers(
  tasks: readonly ITask[],
  others: ReadonlyMap<string, ITask>
): readonly ITask[] {
  const news = tasks.map(task => [task.task, task] as const);
  return others.size === 0 ? tasks : [...new Map([...others, ...news]).values()];
}
