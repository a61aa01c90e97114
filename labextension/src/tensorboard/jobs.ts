/** Parse the job ids of a TensorBoard from command arguments and untrusted outputs. */

import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { isJobId } from '../card/snapshot';

/** Limit of the server. */
export const MAX_JOBS = 20;

/** The unique job ids in `value` in order; empty if any of them is invalid. */
export function jobIds(value: ReadonlyPartialJSONValue | undefined): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_JOBS) {
    return [];
  }
  const found = value.filter(isJobId);
  return found.length === value.length ? [...new Set(found)] : [];
}

/** Key of a set of jobs, independent of their order. */
export function nameOf(jobs: readonly string[]): string {
  return [...jobs].sort().join(',');
}
