/** Check whether the server extension is available and compatible. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRest } from '../tokens';
import { ABSENT, ApiError, sentence } from './errors';
import { API, VERSION, sameRelease } from './version';

export interface IReadiness {
  available: boolean;
  /** One line; also set if the extension is available in another release. */
  problem: string;
}

/** Request `health`; never rejects. */
export async function askReadiness(rest: IRest, trans: TranslationBundle): Promise<IReadiness> {
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
    return { available: false, problem: sentence(problem) };
  }
}

/** Why connecting cannot succeed; empty if the server may only be temporarily unavailable. */
export async function whyAbsent(rest: IRest, trans: TranslationBundle): Promise<string> {
  try {
    const { api } = await rest.health();
    return api === API ? '' : (await askReadiness(rest, trans)).problem;
  } catch (problem) {
    return problem instanceof ApiError && problem.code === ABSENT ? problem.message : '';
  }
}
