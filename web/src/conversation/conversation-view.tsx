import { Suspense } from 'react';
import { Link, Route, Switch } from 'wouter';
import { useConversationNews } from '../announce/use-news.ts';
import { Composer } from '../composer/composer.tsx';
import { ConversationContext, useConversation, useOpenConversation } from '../data/conversation/use-conversation.ts';
import { FirstRun } from '../first-run/first-run.tsx';
import { Panel } from '../panel/panel.tsx';
import { Timeline } from '../timeline/timeline.tsx';
import { lazily } from '../ui/lazily.tsx';
import { ErrorNote, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { Header } from './header.tsx';

const Compare = lazily(async () => (await import('../compare/compare.tsx')).Compare);

/** `/c/:id`: a conversation with its timeline, composer and panel. */
export function ConversationView({ id }: { id: string }) {
  const store = useOpenConversation(id);
  if (store === null) return <Skeleton lines={6} />;
  return (
    <ConversationContext key={store.id} value={store}>
      <Announcing />
      <Opened />
    </ConversationContext>
  );
}

/** A component of its own, so that it does not render with the conversation. */
function Announcing() {
  useConversationNews();
  return null;
}

function Opened() {
  const phase = useConversation((state) => state.phase);
  const conversation = useConversation((state) => state.conversation);
  if (conversation === null) return phase === 'failed' ? <Failed /> : <Skeleton lines={6} afterMs={0} />;
  return (
    // In a very low window, the header scrolls away, and the timeline can fill the window.
    <div className="flex min-h-0 flex-1 short:h-dvh short:flex-none">
      <div className="flex min-w-0 flex-1 flex-col short:block short:overflow-y-auto">
        <Header />
        <Failed />
        <FirstRun />
        <Suspense fallback={<Skeleton lines={6} />}>
          <Switch>
            <Route path="/compare" component={Compare} />
            <Route>
              <div className="flex min-h-0 flex-1 flex-col short:h-dvh">
                <Timeline />
              </div>
              <Composer />
            </Route>
          </Switch>
        </Suspense>
      </div>
      <Panel />
    </div>
  );
}

function Failed() {
  const phase = useConversation((state) => state.phase);
  const error = useConversation((state) => state.error);
  const conversation = useConversation((state) => state.conversation);
  if (phase !== 'failed') return null;
  return (
    <div className="p-4">
      <ErrorNote
        error={error}
        cli={
          conversation === null
            ? 'throughline list'
            : `throughline show ${shellWord(conversation.key ?? conversation.id)}`
        }
      >
        {conversation === null && (
          <p>
            <Link href="~/" className="touch text-ink underline decoration-control underline-offset-3">
              Go to “For you”
            </Link>
          </p>
        )}
      </ErrorNote>
    </div>
  );
}
