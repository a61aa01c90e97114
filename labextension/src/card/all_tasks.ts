/** The tasks of a job beyond those that its view holds, page by page. */

import type { ITask } from '../api/job_types';
import type { IRest } from '../tokens';

/** Tasks that are asked for at a time, and at most: a job has no more. */
const PAGE = 200;
const MOST = 4096;

/** All tasks by their names; what was read so far once `over` says that nobody wants them. */
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

/** The tasks of a view, which are the newest, and the others that were asked for. */
export function withOthers(
  tasks: readonly ITask[],
  others: ReadonlyMap<string, ITask>
): readonly ITask[] {
  const news = tasks.map(task => [task.task, task] as const);
  return others.size === 0 ? tasks : [...new Map([...others, ...news]).values()];
}
