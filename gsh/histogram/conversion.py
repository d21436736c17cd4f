"""shim"""
AnswerFormat = str
def convert(*a): raise NotImplementedError
