/** Workflow runs in outputs: the stored display, then updates from the server. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { IRunPicture, ISubmarine } from '../src/tokens';
import { WorkflowRenderer } from '../src/workflow/renderer';
import { MIME_TYPE, readSnapshot, textOf } from '../src/workflow/snapshot';

vi.hoisted(() => {
  // Lumino needs DragEvent when it is loaded; jsdom does not provide it.
  vi.stubGlobal('DragEvent', Event);
});

const trans = nullTranslator.load('jupyter_submarine');
const RUN = 'nightly-20261122-023000-1f0a';

/** A fake channel; the test sends its messages. */
class FakeServer {
  readonly requests: string[] = [];
  openSubscriptions = 0;
  send: (picture: IRunPicture) => void = () => undefined;
  fail: (problem: string) => void = () => undefined;

  readonly submarine = {
    channel: {
      workflow: (
        run: string,
        url: string,
        listener: (picture: IRunPicture) => void,
        onError: (problem: string) => void
      ) => {
        this.requests.push(`${run} ${url}`.trim());
        this.openSubscriptions += 1;
        this.send = listener;
        this.fail = onError;
        return {
          isDisposed: false,
          dispose: () => {
            this.openSubscriptions -= 1;
          }
        };
      }
    }
  } as unknown as ISubmarine;
}

class RenderedWidget extends Widget implements IRenderMime.IRenderer {
  renderModel(): Promise<void> {
    return Promise.resolve();
  }
}

let rendered: { text: string; trusted: boolean }[] = [];

function render(data: Record<string, string>, trusted: boolean): Promise<IRenderMime.IRenderer> {
  const text = data['text/html'] ?? data['text/plain'] ?? '';
  rendered.push({ text, trusted });
  const widget = new RenderedWidget();
  widget.node.textContent = text;
  return Promise.resolve(widget);
}

function model(changes: object = {}, html = 'stored', trusted = false): IRenderMime.IMimeModel {
  const snapshot = { version: 1, run: RUN, url: '', time: 100, ended: null, ...changes };
  const data = { [MIME_TYPE]: snapshot, 'text/html': html, 'text/plain': 'words' };
  return { data, metadata: {}, trusted, setData: () => undefined };
}

let server: FakeServer;
let output: WorkflowRenderer;

beforeEach(() => {
  rendered = [];
  server = new FakeServer();
  output = new WorkflowRenderer(server.submarine, render, trans);
  Widget.attach(output, document.body);
});

afterEach(() => {
  output.dispose();
  vi.restoreAllMocks();
});

const displayedText = () => output.node.textContent;

test('renders a stored run with the trust of its notebook, then updates from the server', async () => {
  await output.renderModel(model());
  expect(rendered).toEqual([{ text: 'stored', trusted: false }]);
  expect(server.requests).toEqual([RUN]);
  server.send({ time: 200, html: 'live' });
  await vi.waitFor(() => {
    expect(displayedText()).toBe('live');
  });
  expect(rendered.at(-1)).toEqual({ text: 'live', trusted: true });
});

test('ignores a snapshot that is older than the displayed one', async () => {
  await output.renderModel(model());
  server.send({ time: 200, html: 'live' });
  await vi.waitFor(() => {
    expect(displayedText()).toBe('live');
  });
  await output.renderModel(model({ time: 199 }, 'late'));
  server.send({ time: 150, html: 'older' });
  await Promise.resolve();
  expect(displayedText()).toBe('live');
  await output.renderModel(model({ time: 201, ended: 201 }, 'the end', true));
  expect(displayedText()).toBe('the end');
  expect(server.requests).toHaveLength(1);
});

test('keeps the stored display and shows the reason if the server does not know the run', async () => {
  await output.renderModel(model());
  server.fail('No run of that name.');
  expect(displayedText()).toBe(
    'storedNot live. This is the last stored state: No run of that name.'
  );
  server.send({ time: 200, html: 'live' });
  await vi.waitFor(() => {
    expect(displayedText()).toBe('live');
  });
  server.fail('The server is away.');
  expect(displayedText()).toBe('live');
});

test('shows no error for a stored run that had ended', async () => {
  await output.renderModel(model({ ended: 99 }));
  server.fail('No run of that name.');
  expect(displayedText()).toBe('stored');
});

test('subscribes while the page is visible, until the output is disposed', async () => {
  const state = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
  document.dispatchEvent(new Event('visibilitychange'));
  await output.renderModel(model());
  expect(server.requests).toEqual([]);
  state.mockReturnValue('visible');
  document.dispatchEvent(new Event('visibilitychange'));
  expect(server.openSubscriptions).toBe(1);
  output.dispose();
  expect(server.openSubscriptions).toBe(0);
});

test('replaces the subscription when the output contains another run', async () => {
  await output.renderModel(model());
  await output.renderModel(model({ run: 'azkaban:7', url: 'https://a.example', time: 5 }, 'other'));
  expect(server.requests).toEqual([RUN, 'azkaban:7 https://a.example']);
  expect(server.openSubscriptions).toBe(1);
  expect(displayedText()).toBe('other');
});

test('renders a workflow without a run and does not subscribe', async () => {
  await output.renderModel(model({ run: undefined }));
  expect(displayedText()).toBe('stored');
  expect(server.requests).toEqual([]);
});

test('shows the stored display without the server extension', async () => {
  const disconnected = new WorkflowRenderer(null, render, trans);
  Widget.attach(disconnected, document.body);
  await disconnected.renderModel(model());
  expect(disconnected.node.textContent).toBe('stored');
  disconnected.dispose();
});

test('rejects data without a valid run and replaces other invalid fields', () => {
  for (const data of [null, 7, [], {}, { run: 5 }, { run: '' }, { run: 'x'.repeat(501) }]) {
    expect(readSnapshot(data)).toBeNull();
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
