class FigureCanvasAgg:
    required_interactive_framework = None
