/** One run of a workflow: its newest picture. */

import type { IRunPicture } from '../tokens';
import type { FeedMessage, IFeed } from './feed';
import { Listeners, words } from './feed';
import type { ClientMessage } from './wire_types';

export class WorkflowFeed implements IFeed {
  readonly card = true;
  readonly listeners = new Listeners<{ picture: IRunPicture } | { error: string }>();
  last: { picture: IRunPicture } | { error: string } | null = null;

  constructor(
    readonly run: string,
    readonly url: string
  ) {}

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'workflow', run: this.run, url: this.url };
  }

  take(message: FeedMessage) {
    if (message.type === 'workflow') {
      this.last = { picture: { time: message.time, html: message.html } };
      this.listeners.tell(this.last);
    } else if (message.type === 'error') {
      this.fail(words(message));
    }
    return {};
  }

  fail(sentence: string): void {
    const news = { error: sentence };
    // A picture that is known is worth more to a late listener than the sentence.
    this.last = this.last && 'picture' in this.last ? this.last : news;
    this.listeners.tell(news);
  }
}
