// The part of uplot.js that the page uses.
export default class uPlot {
  constructor(options: any, data: any[], parent: Element);
  destroy(): void;
  setData(data: any[]): void;
  static paths: { linear: () => any; stepped: (options: any) => any };
}
