/** Register the completion of `%submarine` lines. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { ABSENT, ApiError } from '../api/rest/errors';
import type { IRest } from '../tokens';
import { ISubmarine } from '../tokens';
import { SubmarineCompletions } from './provider';

export const completionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:completion',
  description: 'Completes %submarine lines with queues and jobs of the live cluster.',
  autoStart: true,
  requires: [ISubmarine, ICompletionProviderManager],
  activate: (
    _app: JupyterFrontEnd,
    submarine: ISubmarine,
    manager: ICompletionProviderManager
  ): void => {
    let absent = false;
    const rest: Pick<IRest, 'complete'> = {
      complete: async (words, signal) => {
        try {
          return await submarine.rest.complete(words, signal);
        } catch (problem) {
          // Without the server extension, only the kernel completes: do not request again.
          absent ||= problem instanceof ApiError && problem.code === ABSENT;
          throw problem;
        }
      }
    };
    manager.registerProvider(new SubmarineCompletions(rest, () => absent));
  }
};
