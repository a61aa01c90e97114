/** Find the job of a kernel in a container among the rows of the job list. */

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { ENDED } from '../api/record';
import type { IJobRow } from '../api/types';

/** Name of the provisioner that starts kernels in containers. */
export const PROVISIONER = 'submarine-yarn';
/** Maximum length of the kernelspec name in the job name. */
const MAX_NAME = 100;

/** Whether the kernels of a kernelspec run in containers. */
export function isRemote(metadata: ReadonlyPartialJSONObject | undefined): boolean {
  const provisioner = metadata?.['kernel_provisioner'];
  return (
    typeof provisioner === 'object' &&
    provisioner !== null &&
    'provisioner_name' in provisioner &&
    provisioner.provisioner_name === PROVISIONER
  );
}

/** The newest job of a kernelspec for one of these documents. */
export function newestJob(
  rows: readonly IJobRow[],
  kernel: string,
  documents: readonly string[]
): IJobRow | undefined {
  const name = `kernel-${kernel}`.slice(0, MAX_NAME);
  return rows
    .filter(row => row.name === name && documents.includes(row.notebook))
    .reduce<IJobRow | undefined>(
      (best, row) => (best && (best.created ?? 0) >= (row.created ?? 0) ? best : row),
      undefined
    );
}

/** Whether the job waits for its container. */
export function isWaiting(row: IJobRow): boolean {
  return !ENDED.has(row.state) && row.state !== 'RUNNING' && row.state !== 'FINISHING';
}
