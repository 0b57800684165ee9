import { useMe } from '../data/session.ts';
import { useNotifying } from '../for-you/notify.ts';
import { allActions } from '../shell/actions.ts';
import { SCHEMES, useScheme } from '../shell/scheme.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/dialog.tsx';
import { Facts } from '../ui/notes.tsx';
import { Section } from './section.tsx';

/** What is chosen in this browser, and who is signed in. */
export function Settings() {
  const { owner, scopes } = useMe();
  const facts: readonly (readonly [string, string])[] = [
    ['Signed in as', owner],
    ['Scopes', scopes.join(', ')],
  ];
  return (
    <Section title="This browser">
      <Facts facts={facts} className="grid-cols-[auto_1fr] gap-x-6" />
      <Notifications />
      <ColourScheme />
      <Button
        small
        onClick={() =>
          allActions()
            .find(({ id }) => id === 'help.keys')
            ?.run()
        }
      >
        Keyboard shortcuts
      </Button>
    </Section>
  );
}

function Notifications() {
  const { isOn, isPossible, turnOn, turnOff, hasContent, allowContent } = useNotifying();
  if (!isPossible) return <p className="text-muted">This browser does not allow the page to show notifications.</p>;
  return (
    <div>
      <Choice
        label="Notify me of questions and ends while no tab is visible"
        value={isOn}
        onChange={(wanted) => (wanted ? void turnOn() : turnOff())}
      />
      {isOn && (
        <Choice
          label="Notifications say what it is about: others may see the screen"
          value={hasContent}
          onChange={allowContent}
        />
      )}
    </div>
  );
}

function ColourScheme() {
  const [scheme, choose] = useScheme();
  return (
    <fieldset className="flex flex-wrap items-center gap-x-4">
      <legend className="sr-only">Colours</legend>
      {(Object.keys(SCHEMES) as (keyof typeof SCHEMES)[]).map((name) => (
        <label key={name} className="flex items-center gap-2 pointer-coarse:min-h-11">
          <input type="radio" name="scheme" checked={scheme === name} onChange={() => choose(name)} />
          {SCHEMES[name]}
        </label>
      ))}
    </fieldset>
  );
}
