/** Whether the server extension is there and speaks our version; asked once, when first needed. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRest } from '../tokens';
import { ABSENT, ApiError, sentence } from './errors';
import { API, VERSION, sameRelease } from './version';

export interface IReadiness {
  available: boolean;
  /** One line; also where it is available but not the same release. */
  problem: string;
}

/** Asks `health`; never rejects. */
export async function askReadiness(rest: IRest, trans: TranslationBundle): Promise<IReadiness> {
  try {
    const { api, version } = await rest.health();
    if (api === API && sameRelease(version, VERSION)) {
      return { available: true, problem: '' };
    }
    const problem = trans.__(
      'This page has Submarine %1 and the server %2: reload the page, or restart the server.',
      VERSION,
      version
    );
    return { available: api === API, problem };
  } catch (problem) {
    return { available: false, problem: sentence(problem) };
  }
}

/** Why there is no use in trying to connect; empty while the server may only be away. */
export async function whyAbsent(rest: IRest, trans: TranslationBundle): Promise<string> {
  try {
    const { api } = await rest.health();
    return api === API ? '' : (await askReadiness(rest, trans)).problem;
  } catch (problem) {
    return problem instanceof ApiError && problem.code === ABSENT ? problem.message : '';
  }
}
