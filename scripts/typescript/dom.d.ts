// What the scripts know of the DOM and TypeScript does not: what a selector finds, and that events come from elements.

interface Window {
  uPlot: any;
}

interface ParentNode {
  querySelector(selector: string): any;
  querySelectorAll(selector: string): NodeListOf<any>;
}

interface Element {
  closest(selector: string): any;
}

// Of the element that has an event, the focus, or is a child.
interface EventTarget {
  action: any;
  checked: any;
  closest: any;
  dataset: any;
  href: any;
  matches: any;
  blur: any;
  focus: any;
}
