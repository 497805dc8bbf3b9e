// Before anything is drawn, so that nothing flickers: the theme that was chosen here before, if any.
document.documentElement.dataset.theme = localStorage.getItem("bimichi-theme") ?? "";
