autograder_student.to_data = plain
