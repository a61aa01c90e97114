import { Clipboard, InputDialog, Notification, showDialog } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import type React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, expect, test, vi } from 'vitest';
import { CancelRequests } from '../src/api/cancel_requests';
import type { IJobView, IJobRow } from '../src/api/types';
import { JobActions, chooseJob, jobArgument } from '../src/commands/actions';
import { DEFAULTS } from '../src/settings';
import type { IRest } from '../src/tokens';

vi.mock('@jupyterlab/apputils', () => ({
  Clipboard: { copyToSystem: vi.fn() },
  Dialog: {
    cancelButton: (options: object) => ({ ...options, accept: false }),
    okButton: (options: object) => ({ ...options, accept: true }),
    warnButton: (options: object) => ({ ...options, accept: true, displayType: 'warn' })
  },
  InputDialog: { getItem: vi.fn() },
  Notification: { success: vi.fn(), info: vi.fn() },
  showDialog: vi.fn()
}));

const JOB = 'digits-20261122-abcd';
const trans = nullTranslator.load('jupyter_submarine');

function answer(accept: boolean): void {
  vi.mocked(showDialog).mockResolvedValue({
    button: { accept } as never,
    isChecked: null,
    value: null
  });
}

function view(values: Partial<IJobView>): () => Promise<IJobView> {
  return () => Promise.resolve({ lost_if_cancelled: '', ...values } as IJobView);
}

function actions(methods: Partial<IRest>, settings = {}): JobActions {
  const rest = { job: view({}), ...methods };
  const cancels = new CancelRequests((job, why) => (rest as IRest).cancel(job, why));
  return new JobActions(
    rest as IRest,
    cancels,
    () => Promise.resolve({ ...DEFAULTS, ...settings }),
    trans
  );
}

beforeEach(() => {
  vi.clearAllMocks();
});

test('cancel asks for confirmation, and Enter keeps the job', async () => {
  const cancel = vi.fn(() => Promise.resolve());
  answer(false);
  expect(await actions({ cancel }).cancel(JOB)).toBe(false);
  expect(cancel).not.toHaveBeenCalled();
  expect(vi.mocked(showDialog).mock.calls[0]?.[0]).toMatchObject({ defaultButton: 0 });
  answer(true);
  expect(await actions({ cancel }).cancel(JOB)).toBe(true);
  expect(cancel).toHaveBeenCalledWith(JOB, expect.any(String));
});

test('the buttons of the confirmation name their effect on the job', async () => {
  const cancel = vi.fn(() => Promise.resolve());
  answer(false);
  await actions({ cancel }).cancel(JOB);
  expect(vi.mocked(showDialog).mock.calls[0]?.[0]?.buttons).toMatchObject([
    { label: 'Keep running', accept: false },
    { label: 'Cancel job', accept: true, displayType: 'warn' }
  ]);
});

test.each([
  ['a kernel', view({ lost_if_cancelled: 'Its variables are lost.' })],
  ['unknown', () => Promise.reject(new Error('502'))]
])('cancel always asks for confirmation if the job is %s', async (_, job) => {
  const cancel = vi.fn(() => Promise.resolve());
  answer(false);
  expect(await actions({ cancel, job }, { confirmCancel: false }).cancel(JOB)).toBe(false);
  const body = vi.mocked(showDialog).mock.calls[0]?.[0]?.body as React.ReactElement;
  expect(renderToStaticMarkup(body)).toContain('variables are lost.');
  expect(cancel).not.toHaveBeenCalled();
});

test('cancel shows the confirmation after 5 s if the server does not respond', async () => {
  vi.useFakeTimers();
  const cancel = vi.fn(() => Promise.resolve());
  answer(true);
  const done = actions({ cancel, job: () => new Promise(() => undefined) }).cancel(JOB);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await done).toBe(true);
  vi.useRealTimers();
});

test('cancel does not ask for confirmation if the setting is off', async () => {
  const cancel = vi.fn(() => Promise.resolve());
  expect(await actions({ cancel }, { confirmCancel: false }).cancel(JOB)).toBe(true);
  expect(showDialog).not.toHaveBeenCalled();
});

test('rerun asks for confirmation only if the setting is on', async () => {
  const rerun = vi.fn(() => Promise.resolve('new-20261122-abcd'));
  expect(await actions({ rerun }).rerun(JOB, true)).toBe('new-20261122-abcd');
  expect(rerun).toHaveBeenCalledWith(JOB, true);
  answer(false);
  expect(await actions({ rerun }, { confirmRerun: true }).rerun(JOB, false)).toBeUndefined();
  expect(rerun).toHaveBeenCalledOnce();
});

test('a failed cancel rejects with the message of the server', async () => {
  const cancel = vi.fn(() => Promise.reject(new Error('Not your job.')));
  answer(true);
  await expect(actions({ cancel }).cancel(JOB)).rejects.toThrow('Not your job.');
});

test('a saved model is reported with its version', async () => {
  const saveModel = vi.fn(() => Promise.resolve({ version: 'v3' } as never));
  expect(await actions({ saveModel }).saveModel(JOB, '')).toBe('v3');
  expect(vi.mocked(Notification.success).mock.calls[0]?.[0]).toContain('v3');
});

function command(text: string): JobActions {
  return actions({ job: view({ command: text }) });
}

test('copies the command unless it is empty or contains control characters', async () => {
  await command('submarine run digits --gpu 1').copyCommand(JOB);
  expect(Clipboard.copyToSystem).toHaveBeenCalledWith('submarine run digits --gpu 1');
  for (const text of ['', 'submarine run x\nrm -rf ~', 'submarine \u001b[A', 'a\u2028b']) {
    await expect(command(text).copyCommand(JOB)).rejects.toThrow(JOB);
  }
  expect(Clipboard.copyToSystem).toHaveBeenCalledOnce();
});

test('rejects an argument that is not a job id', () => {
  expect(jobArgument({ job: JOB }, trans)).toBe(JOB);
  for (const job of [undefined, '', '../x', `${JOB}/..`, 7, '<b>', 'x'.repeat(500)]) {
    expect(() => jobArgument(job === undefined ? {} : { job }, trans)).toThrow(/not a job id/);
  }
});

test('the user selects one of the matching jobs', async () => {
  const rows = [
    { job_id: 'a-20261122-aaaa', state: 'RUNNING' },
    { job_id: 'b-20261122-bbbb', state: 'FAILED' }
  ] as IJobRow[];
  const page = { jobs: rows, total: 2, next: null, problem: '' };
  const rest = { jobs: () => Promise.resolve(page) } as unknown as IRest;
  vi.mocked(InputDialog.getItem).mockImplementation(options =>
    Promise.resolve({
      button: { accept: true } as never,
      isChecked: null,
      value: [...options.items][0] ?? null
    })
  );
  expect(await chooseJob(rest, 't', 'ended', trans)).toBe('b-20261122-bbbb');
  expect(await chooseJob(rest, 'Cancel Job', 'active', trans)).toBe('a-20261122-aaaa');
  // A button "Cancel" would be ambiguous here.
  expect(vi.mocked(InputDialog.getItem).mock.lastCall?.[0]).toMatchObject({
    okLabel: 'Cancel Job',
    cancelLabel: 'Close'
  });
  rows.length = 0;
  await expect(chooseJob(rest, 't', 'active', trans)).rejects.toThrow('No job is running.');
});
