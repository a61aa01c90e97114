/** Check whether the server extension is available and compatible. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRest } from '../tokens';
import { ABSENT, ApiError, errorMessage } from './errors';
import { API, VERSION, sameRelease } from './version';

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
