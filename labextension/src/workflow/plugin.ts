/** Workflows and their runs in outputs. The display of a run continues after a reload. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  htmlRendererFactory,
  IRenderMimeRegistry,
  MimeModel,
  textRendererFactory
} from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DOMAIN } from '../api/plugin';
import { ISubmarine } from '../tokens';
import type { RenderHtml } from './renderer';
import { WorkflowRenderer } from './renderer';
import { MIME_TYPE } from './snapshot';

/** Before HTML, which the same output contains for other front ends. */
const RANK = 40;

export const workflowPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:workflow',
  description: 'Shows a workflow run in the output of a cell, with live updates.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [ISubmarine, ITranslator],
  activate: (
    _app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    submarine: ISubmarine | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    rendermime.addFactory(
      {
        // Safe in untrusted notebooks: the stored HTML is rendered with the trust of the notebook.
        safe: true,
        mimeTypes: [MIME_TYPE],
        defaultRank: RANK,
        createRenderer: options => {
          const renderHtml: RenderHtml = async (data, trusted) => {
            const factory = 'text/html' in data ? htmlRendererFactory : textRendererFactory;
            const [mimeType = ''] = Object.keys(data);
            const renderer = factory.createRenderer({ ...options, mimeType });
            await renderer.renderModel(new MimeModel({ data, trusted }));
            return renderer;
          };
          return new WorkflowRenderer(submarine, renderHtml, trans);
        }
      },
      RANK
    );
  }
};
