/** A workflow's run in an output: what is stored of it, then what the server says. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { IRunPicture, ISubmarine } from '../src/tokens';
import { WorkflowRenderer } from '../src/workflow/renderer';
import { MIME_TYPE, readSnapshot, textOf } from '../src/workflow/snapshot';

vi.hoisted(() => {
  // Lumino looks for it when it is loaded, and jsdom has none.
  vi.stubGlobal('DragEvent', Event);
});

const trans = nullTranslator.load('jupyter_submarine');
const RUN = 'nightly-20261122-023000-1f0a';

/** A channel that a test speaks through. */
class Server {
  readonly asked: string[] = [];
  open = 0;
  say: (picture: IRunPicture) => void = () => undefined;
  fail: (problem: string) => void = () => undefined;

  readonly submarine = {
    channel: {
      workflow: (
        run: string,
        url: string,
        listener: (picture: IRunPicture) => void,
        onError: (problem: string) => void
      ) => {
        this.asked.push(`${run} ${url}`.trim());
        this.open += 1;
        this.say = listener;
        this.fail = onError;
        return {
          isDisposed: false,
          dispose: () => {
            this.open -= 1;
          }
        };
      }
    }
  } as unknown as ISubmarine;
}

class Drawn extends Widget implements IRenderMime.IRenderer {
  renderModel(): Promise<void> {
    return Promise.resolve();
  }
}

let drawn: { text: string; trusted: boolean }[] = [];

function draw(data: Record<string, string>, trusted: boolean): Promise<IRenderMime.IRenderer> {
  const text = data['text/html'] ?? data['text/plain'] ?? '';
  drawn.push({ text, trusted });
  const made = new Drawn();
  made.node.textContent = text;
  return Promise.resolve(made);
}

function model(more: object = {}, html = 'stored', trusted = false): IRenderMime.IMimeModel {
  const said = { version: 1, run: RUN, url: '', time: 100, ended: null, ...more };
  const data = { [MIME_TYPE]: said, 'text/html': html, 'text/plain': 'words' };
  return { data, metadata: {}, trusted, setData: () => undefined };
}

let server: Server;
let output: WorkflowRenderer;

beforeEach(() => {
  drawn = [];
  server = new Server();
  output = new WorkflowRenderer(server.submarine, draw, trans);
  Widget.attach(output, document.body);
});

afterEach(() => {
  output.dispose();
  vi.restoreAllMocks();
});

const shown = () => output.node.textContent;

test('a stored run is drawn as trusted as its notebook, and goes on from the server', async () => {
  await output.renderModel(model());
  expect(drawn).toEqual([{ text: 'stored', trusted: false }]);
  expect(server.asked).toEqual([RUN]);
  server.say({ time: 200, html: 'live' });
  await vi.waitFor(() => {
    expect(shown()).toBe('live');
  });
  expect(drawn.at(-1)).toEqual({ text: 'live', trusted: true });
});

test('what is older than what is seen is not drawn, whoever sends it', async () => {
  await output.renderModel(model());
  server.say({ time: 200, html: 'live' });
  await vi.waitFor(() => {
    expect(shown()).toBe('live');
  });
  await output.renderModel(model({ time: 199 }, 'late'));
  server.say({ time: 150, html: 'older' });
  await Promise.resolve();
  expect(shown()).toBe('live');
  await output.renderModel(model({ time: 201, ended: 201 }, 'the end', true));
  expect(shown()).toBe('the end');
  expect(server.asked).toHaveLength(1);
});

test('where the server knows nothing of it, it stays as it was and says so', async () => {
  await output.renderModel(model());
  server.fail('No run of that name.');
  expect(shown()).toBe('storedNot live. This is the last stored state: No run of that name.');
  server.say({ time: 200, html: 'live' });
  await vi.waitFor(() => {
    expect(shown()).toBe('live');
  });
  server.fail('The server is away.');
  expect(shown()).toBe('live');
});

test('of a run that had ended nothing is missing', async () => {
  await output.renderModel(model({ ended: 99 }));
  server.fail('No run of that name.');
  expect(shown()).toBe('stored');
});

test('nothing is asked for a page that nobody sees, nor after its output is gone', async () => {
  const state = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
  document.dispatchEvent(new Event('visibilitychange'));
  await output.renderModel(model());
  expect(server.asked).toEqual([]);
  state.mockReturnValue('visible');
  document.dispatchEvent(new Event('visibilitychange'));
  expect(server.open).toBe(1);
  output.dispose();
  expect(server.open).toBe(0);
});

test('another run in the same output is another question', async () => {
  await output.renderModel(model());
  await output.renderModel(model({ run: 'azkaban:7', url: 'https://a.example', time: 5 }, 'other'));
  expect(server.asked).toEqual([RUN, 'azkaban:7 https://a.example']);
  expect(server.open).toBe(1);
  expect(shown()).toBe('other');
});

test('a workflow that does not run is drawn, and nobody is asked', async () => {
  await output.renderModel(model({ run: undefined }));
  expect(shown()).toBe('stored');
  expect(server.asked).toEqual([]);
});

test('without the server extension it is what it was', async () => {
  const alone = new WorkflowRenderer(null, draw, trans);
  Widget.attach(alone, document.body);
  await alone.renderModel(model());
  expect(alone.node.textContent).toBe('stored');
  alone.dispose();
});

test('what names no run is none', () => {
  for (const said of [null, 7, [], {}, { run: 5 }, { run: '' }, { run: 'x'.repeat(501) }]) {
    expect(readSnapshot(said)).toBeNull();
  }
  expect(readSnapshot({ run: 'r', url: 5 })).toBeNull();
  expect(readSnapshot({ run: 'r', time: 'soon' })).toEqual({
    run: 'r',
    url: '',
    time: 0,
    ended: false
  });
  expect(textOf(['a', 'b', 5])).toBe('ab');
});
