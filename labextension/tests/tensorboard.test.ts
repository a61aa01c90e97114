import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { describe, expect, it, vi } from 'vitest';
import { jobIds, nameOf } from '../src/tensorboard/widget';
import { trans } from './card/fakes';
import { TensorBoardRenderer, type ITensorBoardContext } from '../src/tensorboard/renderer';

// Lumino needs DragEvent when it is loaded; jsdom does not provide it.
vi.hoisted(() => {
  vi.stubGlobal('DragEvent', MouseEvent);
});

const ONE = 'digits-20261120-7f3a';
const TWO = 'other-20261121-00ff';
const MIME = 'application/vnd.submarine.tensorboard.v1+json';

function modelOf(jobs: unknown, trusted: boolean): IRenderMime.IMimeModel {
  return {
    trusted,
    metadata: {},
    data: { [MIME]: { jobs } } as IRenderMime.IMimeModel['data'],
    setData: () => undefined
  };
}

function rendered(problem = ''): {
  renderer: TensorBoardRenderer;
  context: ITensorBoardContext;
} {
  const context: ITensorBoardContext = {
    trans,
    problem: () => Promise.resolve(problem),
    url: jobs => `/base/submarine/tensorboard/${jobs.join(',')}/`,
    openTab: vi.fn()
  };
  return { renderer: new TensorBoardRenderer(MIME, context), context };
}

describe('job ids in arguments and outputs', () => {
  it('are returned in order without duplicates', () => {
    expect(jobIds([ONE, TWO, ONE])).toEqual([ONE, TWO]);
  });

  it.each([
    [undefined],
    [ONE],
    [[]],
    [[ONE, 7]],
    [[ONE, '../../api/contents']],
    [[`${ONE}/../../../login`]],
    [['//evil.example']],
    [['javascript:alert(1)']],
    [[`${ONE}?token=1`]],
    [Array(21).fill(ONE)]
  ])('are not read from %j', value => {
    expect(jobIds(value)).toEqual([]);
  });

  it('have the same key in any order', () => {
    expect(nameOf([TWO, ONE])).toBe(nameOf([ONE, TWO]));
  });
});

describe('TensorBoard in an output', () => {
  it('is shown at once in a trusted notebook', async () => {
    const { renderer, context } = rendered();
    await renderer.renderModel(modelOf([ONE, TWO], true));
    const frame = renderer.node.querySelector('iframe');
    expect(frame?.getAttribute('src')).toBe(`/base/submarine/tensorboard/${ONE},${TWO}/`);
    expect(frame?.getAttribute('sandbox')).not.toContain('allow-top-navigation');
    expect(frame?.title).toContain(ONE);
    renderer.node.querySelector('button')?.click();
    expect(context.openTab).toHaveBeenCalledWith([ONE, TWO]);
  });

  it('starts only after a click in an untrusted notebook', async () => {
    const { renderer } = rendered();
    await renderer.renderModel(modelOf([ONE], false));
    expect(renderer.node.querySelector('iframe')).toBeNull();
    renderer.node.querySelector('button')?.click();
    expect(renderer.node.querySelector('iframe')).not.toBeNull();
  });

  it('is replaced by a text if the output contains no valid job id', async () => {
    const { renderer } = rendered();
    await renderer.renderModel(modelOf(['<img src=x onerror=alert(1)>'], true));
    expect(renderer.node.querySelector('iframe, img, button')).toBeNull();
    expect(renderer.node.textContent).toContain('does not name a job');
  });

  it('is replaced by the reason if the server extension is not available', async () => {
    const { renderer } = rendered('The server extension is not enabled.');
    await renderer.renderModel(modelOf([ONE], true));
    expect(renderer.node.querySelector('iframe')).toBeNull();
    expect(renderer.node.textContent).toContain('The server extension is not enabled.');
  });
});
