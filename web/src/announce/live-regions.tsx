import { type Urgency, useSaid } from './announce.ts';

/** Where screen readers hear what is new. In the frame of the page, so that they stay when a view changes. */
export function LiveRegions() {
  return (
    <>
      <Region urgency="polite" />
      <Region urgency="assertive" />
    </>
  );
}

function Region({ urgency }: { urgency: Urgency }) {
  const said = useSaid((all) => all[urgency]);
  return (
    <div className="sr-only" aria-live={urgency} aria-relevant="additions" data-live={urgency}>
      {said.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}
