/** Which job a kernel in a container is, among the rows of the list; knows no page and no server. */

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { ENDED } from '../api/job_types';
import type { IJobRow } from '../api/list_types';

/** Name of the provisioner that starts kernels in containers. */
export const PROVISIONER = 'submarine-yarn';
/** Longest part of a kernelspec's name that is in the name of its jobs. */
const MOST = 100;

/** Whether a kernelspec says that its kernels run in containers. */
export function isRemote(metadata: ReadonlyPartialJSONObject | undefined): boolean {
  const stanza = metadata?.['kernel_provisioner'];
  return (
    typeof stanza === 'object' &&
    stanza !== null &&
    'provisioner_name' in stanza &&
    stanza.provisioner_name === PROVISIONER
  );
}

/** The newest job of a kernelspec for one of these: the kernel that starts, runs, or ran last. */
export function newestOf(
  rows: readonly IJobRow[],
  kernel: string,
  documents: readonly string[]
): IJobRow | undefined {
  const name = `kernel-${kernel}`.slice(0, MOST);
  return rows
    .filter(row => row.name === name && documents.includes(row.notebook))
    .reduce<IJobRow | undefined>(
      (best, row) => (best && (best.created ?? 0) >= (row.created ?? 0) ? best : row),
      undefined
    );
}

/** Whether its container is still to come. */
export function isWaiting(row: IJobRow): boolean {
  return !ENDED.has(row.state) && row.state !== 'RUNNING' && row.state !== 'FINISHING';
}
