/**
 * The job record as the server sends it: the declared fields without those that no page shows.
 *
 * Documented in docs/server.md. All values come from a cluster, a container or a notebook: show
 * them as text, never as markup, and follow addresses only through `safeLink`.
 */

import type * as schema from './record_schema';

export type { IFailure, IPhase, ITracebackFrame as IFrame, State } from './record_schema';

/** Final states. A job in a final state does not change, except LOST. */
export const ENDED: ReadonlySet<schema.State> = new Set<schema.State>([
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'LOST'
]);

export type IJobEvent = Omit<schema.IEvent, 'data'>;

export type ITask = Omit<schema.ITaskRecord, 'pid' | 'network'>;

/** The job record without its events, which are sent beside it. */
export interface IJobRecord extends Omit<
  schema.IJobRecord,
  'version' | 'events' | 'tasks' | 'last_known' | 'written_by'
> {
  tasks: ITask[];
}
