/** Version of the front end; whether the server extension is available and compatible. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRest } from '../tokens';
import { ABSENT, ApiError, errorMessage } from './rest/errors';

/** Same as in package.json; a test compares them. */
export const VERSION = '0.1.0';

/** Protocol version; changes with each incompatible change. */
export const API = 1;

const RELEASE = /^v?(\d+(?:\.\d+)*)[-_.]?(?:(alpha|beta|a|b|rc|dev)[-_.]?(\d*))?/;
const SHORT: Readonly<Record<string, string>> = { alpha: 'a', beta: 'b' };

/** Normalize npm (`1.2.0-rc.1`) and Python (`1.2.0rc1`) versions; build metadata is removed. */
export function release(version: string): string {
  const match = RELEASE.exec(version.trim().toLowerCase());
  if (!match) {
    return version;
  }
  const stage = match[2];
  return stage ? `${match[1] ?? ''}${SHORT[stage] ?? stage}${match[3] || '0'}` : (match[1] ?? '');
}

/** Whether both are the same release. */
export function sameRelease(one: string, other: string): boolean {
  return release(one) === release(other);
}

export interface IReadiness {
  available: boolean;
  /** One line; also set if the extension is available in another release. */
  problem: string;
}

/** Request `health`; never rejects. */
export async function checkReadiness(rest: IRest, trans: TranslationBundle): Promise<IReadiness> {
  try {
    const { api, version } = await rest.health();
    if (api === API && sameRelease(version, VERSION)) {
      return { available: true, problem: '' };
    }
    const problem = trans.__(
      'The page uses Submarine %1 and the server %2. Reload the page or restart the server.',
      VERSION,
      version
    );
    return { available: api === API, problem };
  } catch (problem) {
    return { available: false, problem: errorMessage(problem) };
  }
}

/** Why connecting cannot succeed; empty if the server may only be temporarily unavailable. */
export async function absenceReason(rest: IRest, trans: TranslationBundle): Promise<string> {
  try {
    const { api } = await rest.health();
    return api === API ? '' : (await checkReadiness(rest, trans)).problem;
  } catch (problem) {
    return problem instanceof ApiError && problem.code === ABSENT ? problem.message : '';
  }
}
