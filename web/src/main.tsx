import { CSPProvider } from '@base-ui/react/csp-provider';
import { StrictMode, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { signIn, useSession } from './data/session.ts';
import { Shell } from './shell/shell.tsx';
import { Button } from './ui/button.tsx';
import { CliLine, Empty, ErrorNote, Skeleton } from './ui/notes.tsx';
import { Tips } from './ui/tip.tsx';
import './styles.css';

function App() {
  useEffect(() => void signIn(), []);
  return (
    // The Content-Security-Policy allows no style elements.
    <CSPProvider disableStyleElements>
      <Entrance />
      <Tips />
    </CSPProvider>
  );
}

function Entrance() {
  const session = useSession();
  if (session.phase === 'ready') return <Shell />;
  if (session.phase === 'connecting') return <Skeleton />;
  if (session.phase === 'signed-out') return <SignedOut />;
  return (
    <main className="mx-auto max-w-lg space-y-3 p-6">
      <h1 className="text-seam font-semibold">Throughline</h1>
      <ErrorNote error={session.error} />
      <Button onClick={() => void signIn()}>Try again</Button>
    </main>
  );
}

function SignedOut() {
  return (
    <main>
      <h1 className="pt-16 text-center text-seam font-semibold">Throughline</h1>
      <Empty title="This browser is not signed in.">
        <p>Run this command on the server’s machine. Then open the link that it prints in this browser.</p>
        <CliLine line="throughline link" />
        <Button onClick={() => void signIn()}>Try again</Button>
      </Empty>
    </main>
  );
}

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
