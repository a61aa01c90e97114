/** The frame of TensorBoard in a tab or an output. */

/**
 * A frame for an address of the Jupyter server.
 *
 * The sandbox forbids navigation of the page and dialogs. The frame has the origin of the page,
 * which TensorBoard needs for authentication.
 */
export function createFrame(url: string, title: string): HTMLIFrameElement {
  const frame = document.createElement('iframe');
  frame.className = 'jp-Submarine-tensorboardFrame';
  frame.title = title;
  frame.loading = 'lazy';
  frame.referrerPolicy = 'same-origin';
  frame.setAttribute(
    'sandbox',
    'allow-scripts allow-same-origin allow-forms allow-popups allow-downloads'
  );
  // The initial theme of JupyterLab; TensorBoard has its own switch.
  const dark = document.body.dataset['jpThemeLight'] === 'false';
  frame.src = dark ? `${url}?darkMode=true` : url;
  return frame;
}
