// Returns the charts that libraries on the page have drawn, with their values, and the boxes of those in the window.
(() => {
    const scale = devicePixelRatio, charts = [];
    const add = (element, kind, values) => {
        const r = element.getBoundingClientRect();
        if (r.width < 120 || r.height < 80 || r.top < 0 || r.left < 0 || r.bottom > innerHeight || r.right > innerWidth) return;
        charts.push({ kind, values, box: [r.left, r.top, r.right, r.bottom].map(v => Math.round(v * scale)) });
    };
    const name = kinds => kinds.length && kinds.every(k => k === kinds[0]) && ['bar', 'line'].includes(kinds[0]) ? kinds[0]
        : kinds.some(k => k === 'bar') ? 'bar' : 'other';
    for (const chart of window.AmCharts?.charts || []) {
        const graphs = chart.type === 'serial' ? chart.graphs : [], kinds = graphs.map(g => ({ column: 'bar', line: 'line', smoothedLine: 'line' })[g.type || 'line'] || 'other');
        const values = graphs.flatMap(g => (chart.dataProvider || []).map(d => +d[g.valueField])).filter(Number.isFinite);
        add(chart.div, name(kinds), values);
    }
    for (const holder of window.jQuery?.plot ? jQuery('div').toArray() : []) {
        const plot = jQuery(holder).data('plot');
        if (!plot) continue;
        const series = plot.getData(), kinds = series.map(s => s.pie?.show ? 'other' : s.bars?.show ? 'bar' : s.lines?.show ? 'line' : 'other');
        add(holder, name(kinds), series.flatMap(s => (s.data || []).map(d => d && +d[1])).filter(Number.isFinite));
    }
    for (const key of Object.keys(window)) {
        let chart = null;
        try { chart = window[key]; } catch { continue; }
        if (!window.dhtmlXChart || !chart?._settings?.view || !chart._obj?.getBoundingClientRect) continue;
        const kind = /^(bar|stackedBar|barH|stackedBarH)$/.test(chart._settings.view) ? 'bar' : /^(line|spline)$/.test(chart._settings.view) ? 'line' : 'other';
        const data = Object.values(chart.data?.pull || {}), fields = (chart._series || [chart._settings]).map(s => s.value);
        add(chart._obj, kind, data.flatMap(d => fields.map(f => typeof f === 'function' ? +f(d) : NaN)).filter(Number.isFinite));
    }
    for (const chart of Object.values(window.Chart?.instances || {})) {
        const canvas = chart.canvas || chart.chart?.canvas, sets = chart.data?.datasets || [];
        const kinds = sets.map(s => ({ bar: 'bar', horizontalBar: 'bar', line: 'line' })[s.type || chart.config?.type] || 'other');
        if (canvas) add(canvas, name(kinds), sets.flatMap(s => (s.data || []).map(d => +(d?.y ?? d))).filter(Number.isFinite));
    }
    for (const chart of window.realCharts || []) add(chart.element, chart.kind, chart.values);
    return charts;
})()
