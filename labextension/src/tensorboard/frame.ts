/** The frame in which TensorBoard is shown, in a tab or in an output. */

/**
 * A frame at an address of our own server.
 *
 * It may not navigate the page around it, nor open dialogs. It is of our origin, as TensorBoard
 * must be to be let in.
 */
export function createFrame(url: string, title: string): HTMLIFrameElement {
  const frame = document.createElement('iframe');
  frame.className = 'jp-Submarine-boardFrame';
  frame.title = title;
  frame.loading = 'lazy';
  frame.referrerPolicy = 'same-origin';
  frame.setAttribute(
    'sandbox',
    'allow-scripts allow-same-origin allow-forms allow-popups allow-downloads'
  );
  // As JupyterLab is when it is opened; TensorBoard has a button of its own for it.
  const dark = document.body.dataset['jpThemeLight'] === 'false';
  frame.src = dark ? `${url}?darkMode=true` : url;
  return frame;
}
