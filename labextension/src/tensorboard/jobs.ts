/** Which jobs a TensorBoard is of: read from arguments and outputs that anybody may have written. */

import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { isJobId } from '../card/snapshot';

/** As many as the server shows in one. */
export const MAX_JOBS = 20;

/** The job ids in `value`, each once, in their order; nothing where any of them is none. */
export function jobIds(value: ReadonlyPartialJSONValue | undefined): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_JOBS) {
    return [];
  }
  const found = value.filter(isJobId);
  return found.length === value.length ? [...new Set(found)] : [];
}

/** One name for a set of jobs, whatever their order. */
export function nameOf(jobs: readonly string[]): string {
  return [...jobs].sort().join(',');
}
