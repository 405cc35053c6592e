import * as React from 'react';

type Props = { title: string; onClick?: () => void };

/** Shows a card. */
export function Card({ title }: Props) {
  const inner = <p>{title}</p>;
  return <>{inner}</>;
}

export const Button = React.memo(<T,>(p: { value: T }) => <button>{String(p.value)}</button>);

export default class Panel extends React.Component<Props> {
  state = { open: false };
  render() { return <Card title="x" {...this.props} />; }
}
